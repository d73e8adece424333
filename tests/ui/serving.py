"""For the tests of the live page: a server to be killed, streams sound and broken, and waiting for the page."""

import socket
import subprocess
import sys

import numpy as np
from selenium.webdriver.support.ui import WebDriverWait

from examples.serve_demo import Service, wait_until_ready

PLAIN = {"labels": [0, 1], "positive": 1, "arl": 100_000, "reference": [[4500, 500], [1000, 4000]]}


# The service by a clock that runs so many times as fast.
HURRIED = """
import sys, time
from fourrates.serve.clock import Clock
began, times = time.time(), float(sys.argv.pop(1))
Clock.now = lambda self: began + (time.time() - began) * times
from fourrates.__main__ import main
main()
"""


class Server:
    """`fourrates serve` on a port of its own; may be killed and started again on what it wrote."""

    def __init__(self, folder, *arguments, hurry=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder, self.arguments, self.hurry, self.process = folder, arguments, hurry, None
        self.service = Service(f"http://127.0.0.1:{self.port}")
        self.start()

    def start(self):
        program = ["-m", "fourrates"] if self.hurry is None else ["-c", HURRIED, str(self.hurry)]
        command = [sys.executable, *program, "serve", "--data", self.folder, "--port", str(self.port)]
        self.process = subprocess.Popen([*command, *self.arguments], stdout=subprocess.DEVNULL)
        wait_until_ready(self.service, self.process)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.terminate()
        self.process.wait(30)

    def put(self, name, **config):
        self.service.ask(self.service.monitor(name), PLAIN | config, "PUT")

    def send(self, name, y_true, y_pred, **columns):
        body = {"y_true": np.asarray(y_true).tolist(), "y_pred": np.asarray(y_pred).tolist(), **columns}
        return self.service.ask(self.service.monitor(name, "/events"), body)

    def detail(self, name):
        return self.service.ask(self.service.monitor(name))


def until(browser, script, *arguments, seconds=10):
    """The first true value of a script, or a failure that names it."""
    found = WebDriverWait(browser, seconds, 0.05)
    return found.until(lambda one: one.execute_script(script, *arguments), f"not within {seconds} s: {script}")


def note_when(browser, condition):
    """Have the page note the moment at which something is so: asking it again and again would take time of its own."""
    browser.execute_script(
        "const met = new Function(`return ${arguments[0]}`);"
        "new MutationObserver((_, watch) => { if (met()) { window.seenAt = Date.now(); watch.disconnect(); } })"
        ".observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });",
        condition,
    )


def text(browser, selector):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent).join('\\n')", selector
    )


def pairs(size, tpr, seed=0):
    """Balanced classes at tnr 0.9 and this tpr."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, size)
    right = random.random(size) < np.where(truth == 1, tpr, 0.9)
    return truth, np.where(right, truth, 1 - truth)


def sound(size, seed=0):
    return pairs(size, 0.8, seed)


def broken(size, seed=0):
    return pairs(size, 0.4, seed)


def findings(browser):
    return browser.execute_script("return [...document.querySelectorAll('.drift')].map((e) => e.dataset.id)")


def check_width(browser, width):
    outside = browser.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3, p, li, dd, dt, td, button, canvas, select, .meter')]"
        ".filter((e) => e.offsetParent && !e.closest('.scroll') && !e.closest('.skip'))"
        ".filter((e) => e.getBoundingClientRect().right > arguments[0] + 1).map((e) => e.outerHTML.slice(0, 80))",
        width,
    )
    assert outside == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


BUTTON = "[...document.querySelectorAll('button')].find((e) => e.textContent === arguments[0] && e.offsetParent)"


def press(browser, name):
    until(browser, f"return {BUTTON}", name).click()
