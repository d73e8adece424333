"""A real browser and a real terminal. Without them these tests are skipped, or fail where FOURRATES_UI is set."""

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from fourrates.streams import fraud

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"


def needed(reason):
    if os.environ.get("FOURRATES_UI"):
        pytest.fail(reason)
    pytest.skip(reason + "; make test-ui installs it")


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    stream = fraud(seed=1)
    path = tmp_path_factory.mktemp("ui") / "transactions.csv"
    rows = zip(np.datetime_as_string(stream.times), stream.y_true, stream.y_pred, strict=True)
    path.write_text("timestamp,y_true,y_pred\n" + "".join(f"{t},{a},{b}\n" for t, a, b in rows))
    return path


@pytest.fixture(scope="session")
def page(data):
    path = data.with_name("report.html")
    command = [sys.executable, "-m", "fourrates", "detect", data, "-d", "LFR(detect=1e-6)", "--report", path]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        needed("selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        needed("no chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    PICTURES.mkdir(parents=True, exist_ok=True)
    yield chrome
    chrome.quit()


@pytest.fixture
def opened(browser, page):
    """Open the page at a size, in light or dark."""

    def show(width=1100, height=900, scheme="light", media="screen", path=page):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        browser.get_log("browser")
        browser.get(path.as_uri())
        return browser

    return show


@pytest.fixture
def terminal():
    """A tmux window of 34 lines; give it a command, read its screen."""
    tmux = shutil.which("tmux")
    if tmux is None:
        needed("no tmux")
    name = f"fourrates-{uuid.uuid4().hex}"  # a server of its own: the last one may still be going down
    base = [tmux, "-L", name]

    class Terminal:
        def start(self, command, columns=110):
            size = ["-x", str(columns), "-y", "34"]
            subprocess.run([*base, "-f", os.devnull, "new-session", "-d", *size, "bash --norc"], check=True)
            self.type(command)
            self.press("Enter")

        def type(self, text):
            subprocess.run([*base, "send-keys", "-l", text], check=True)

        def press(self, key):
            subprocess.run([*base, "send-keys", key], check=True)

        def screen(self, colours=False):
            command = [*base, "capture-pane", "-p", *(["-e"] if colours else [])]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    yield Terminal()
    subprocess.run([*base, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def server(tmp_path):
    from .serving import Server

    made = Server(tmp_path / "data")
    yield made
    made.close()


@pytest.fixture(scope="session")
def lively(tmp_path_factory):
    """The demonstration, fifty seconds of it in six: the classifier is blind to French frauds."""
    from examples.serve_demo import STEP, Demo

    from .serving import Server

    made = Server(tmp_path_factory.mktemp("lively"))
    demo = Demo(made.service, seed=1)
    demo.create()
    began = time.monotonic()
    for step in range(200):  # at eight times its pace: charts need points that are seconds apart
        demo.step()
        time.sleep(max(0, began + step * STEP / 8 - time.monotonic()))
    yield made
    made.close()


@pytest.fixture
def seen(browser):
    """Open a server's page at a size, light or dark; the page of a monitor, or of a segment, where one is named."""
    from .serving import until

    def show(server, monitor=None, width=1440, height=900, scheme="light", segment=None, wait=True):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
        browser.get("about:blank")  # else only the part after # would change, and the page would stay
        browser.get_log("browser")
        path = "/" if monitor is None else f"/#/monitor/{quote(monitor, safe='')}"
        path += "" if segment is None else f"/segment/{quote(json.dumps(segment, separators=(',', ':')), safe='')}"
        browser.get(server.service.address + path)
        if wait:
            until(browser, "return document.querySelector('.connection').textContent === 'Live'")
            until(browser, "return document.querySelector('header[aria-busy]').ariaBusy === 'false'")  # all is drawn
        return browser

    yield show
    browser.get("about:blank")  # the stream ends with the page
