"""Reports of all kinds in Chromium: names that try to run, 2 to 10 classes, 1 and 1,000 streams, every detector."""

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.baselines import detector_class
from fourrates.cli.options import NAMES
from fourrates.report import page as report
from fourrates.watch import Watch
from fourrates.watch.trace import Trace

pytest.importorskip("selenium", reason="selenium is not installed; make test-ui installs it")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from .test_report_in_a_browser import errors, picture

SIZES = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]
RUN = "window.ran = (window.ran || 0) + 1"
HOSTILE = [
    "{{data}}<img src=x onerror='" + RUN + "'>",
    "</script><script>" + RUN + "</script>",
    "<svg onload='" + RUN + "'>",
    '"><iframe srcdoc="<script>parent.ran=1</script>"></iframe>',
    "<style>body{display:none}</style>",
    "<!--<script>",
    "{% for x in ().__class__.__mro__ %}{{ x }}{% endfor %}",
    "\u2028\u2029\x1b[2J",
    "javascript:" + RUN,
    "a" * 200,
    "[/x]$\\frac$",
]


def write(path, frame, detector, by=None):
    run = Watch(detector, trace=Trace)
    events = io.read(frame, labels=detector.parameters["labels"], columns=io.Columns("y_true", "y_pred", by=by))
    found = [one for batch in events for one in run.update(batch, events.keys)]
    path.write_text(report(run, events, found), encoding="utf-8")
    return found


def falling(names, size=8000, seed=1):
    """A stream in which the recall of the second class falls half way."""
    random = np.random.default_rng(seed)
    classes = len(names)
    truth = random.integers(0, classes, size)
    share = np.where((np.arange(size) > size // 2) & (truth == 1), 0.4, 0.9)
    pred = np.where(random.random(size) < share, truth, (truth + random.integers(1, classes, size)) % classes)
    labels = np.array(names, dtype=object)
    return {"y_true": labels[truth].tolist(), "y_pred": labels[pred].tolist()}


def check_layout(browser, width):
    """Nothing is wider than the window, and no column of facts is squeezed."""
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    narrowest = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('.drifts > li dd')].filter((e) => e.offsetParent)"
        ".map((e) => e.getBoundingClientRect().width))"
    )
    assert narrowest > 120
    outside = browser.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3, p, li, dd, button, canvas, select')]"
        ".filter((e) => e.offsetParent && !e.closest('.scroll'))"
        ".filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Every hostile name as a stream, and all of them as labels and as the name of a column."""
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    frames = [falling(HOSTILE, 12_000, seed) for seed in range(len(HOSTILE))]
    column = HOSTILE[0]
    frame = {key: [value for one in frames for value in one[key]] for key in ("y_true", "y_pred")}
    frame[column] = [name for name in HOSTILE for _ in range(12_000)]
    found = write(path, frame, fr.LFR(detect=1e-7, labels=HOSTILE), by=column)
    assert {one.segment for one in found} == set(HOSTILE)
    return path


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_names_that_try_to_run_are_text_and_the_page_is_whole(opened, hostile, width, scheme):
    browser = opened(width, scheme=scheme, path=hostile)
    assert browser.execute_script("return window.ran") is None
    assert errors(browser) == []  # the policy had nothing to stop: nothing came in
    assert browser.find_elements(By.CSS_SELECTOR, "img, iframe, body svg, body style") == []
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 3
    text = browser.execute_script("return document.querySelector('main').textContent")
    for name in HOSTILE:
        shown = name.replace("\u2028\u2029\x1b", r"\u2028\u2029\x1b")
        assert shown[:90] in text
    assert browser.find_elements(By.CSS_SELECTOR, "h2")[-1].text == "Settings"
    check_layout(browser, width)
    chooser = Select(browser.find_element(By.ID, "stream"))
    for place in range(len(chooser.options)):
        chooser.select_by_index(place)
        assert browser.find_elements(By.CSS_SELECTOR, ".chart canvas")
    assert browser.execute_script("return window.ran") is None
    assert errors(browser) == []
    picture(browser, f"hostile-{scheme}-{width}")


def test_what_came_in_all_the_same_would_not_run(opened, tmp_path, page):
    """The policy alone stops it: a page into which script and style were put by hand."""
    path = tmp_path / "forged.html"
    added = f"<script>{RUN}</script><img src=x onerror='{RUN}'><style>main {{ display: none }}</style>"
    path.write_text(page.read_text(encoding="utf-8").replace("<main>", f"<main>{added}"), encoding="utf-8")
    browser = opened(path=path)
    assert browser.execute_script("return window.ran") is None
    assert browser.find_element(By.TAG_NAME, "main").is_displayed()
    assert len(browser.find_elements(By.CSS_SELECTOR, ".chart canvas")) == 4
    assert "Content Security Policy" in str(errors(browser))


@pytest.mark.parametrize("classes", range(2, 11))
def test_any_number_of_classes_has_room(opened, tmp_path, classes):
    path = tmp_path / "report.html"
    names = [f"class {number}" for number in range(classes)]
    assert write(path, falling(names), fr.LFR(detect=1e-7, labels=names))
    for width, scheme in SIZES:
        browser = opened(width, scheme=scheme, path=path)
        assert errors(browser) == []
        check_layout(browser, width)
        assert len(browser.find_elements(By.CSS_SELECTOR, ".drift .matrix")) >= 2
        if classes in (3, 10):
            picture(browser, f"classes-{classes}-{scheme}-{width}")


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    path = tmp_path_factory.mktemp("thousand") / "report.html"
    random = np.random.default_rng(5)
    size = 400_000
    model = random.integers(0, 1000, size)
    truth = random.integers(0, 2, size)
    bad = (np.arange(size) > size // 2) & (model < 60)
    pred = np.where(random.random(size) < np.where(bad, 0.4, 0.9), truth, 1 - truth)
    names = np.array([f"model-{number}" for number in range(1000)])
    write(path, {"y_true": truth, "y_pred": pred, "model": names[model]}, fr.LFR(detect=1e-7), by="model")
    return path


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_thousand_streams_have_room(opened, thousand, width, scheme):
    browser = opened(width, scheme=scheme, path=thousand)
    assert errors(browser) == []
    check_layout(browser, width)
    assert "of 1,000 segments drifted" in browser.find_element(By.TAG_NAME, "h1").text
    assert len(browser.find_elements(By.CSS_SELECTOR, "#stream option")) > 1
    for details in browser.find_elements(By.TAG_NAME, "summary"):
        details.click()
    check_layout(browser, width)
    picture(browser, f"thousand-{scheme}-{width}")


@pytest.mark.parametrize("name", NAMES)
def test_the_drifts_of_every_detector_are_drawn(opened, tmp_path, name):
    path = tmp_path / "report.html"
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 20_000)
    pred = np.where(random.random(20_000) < np.where(np.arange(20_000) < 10_000, 0.95, 0.3), truth, 1 - truth)
    assert write(path, {"y_true": truth, "y_pred": pred}, detector_class(name)())
    for width in (1440, 390):
        browser = opened(width, path=path)
        assert errors(browser) == []
        check_layout(browser, width)
        assert browser.find_elements(By.CSS_SELECTOR, ".chart canvas")


def test_axes_are_scaled_to_the_rates(opened, page):
    browser = opened()
    ranges = browser.execute_script("return fourrates.charts().map((c) => [c.scales.y.min, c.scales.y.max])")
    assert min(low for low, _ in ranges) < 0.2
    assert max(low for low, _ in ranges) > 0.6  # npv of 0.99 has an axis of its own
    assert all(high > low for low, high in ranges)


def test_the_band_is_where_the_drift_started(opened, tmp_path):
    path = tmp_path / "report.html"
    names = ["0", "1", "2"]
    assert write(path, falling(names), fr.FourRates(labels=names))
    browser = opened(path=path)
    findings = browser.execute_script("return fourrates.stream().drifts")
    drifts = [finding for finding in findings if "between" in finding]  # of what becomes of a drift no band is drawn
    assert drifts
    for drift in drifts:
        first, last = drift["between"]
        assert first <= drift["started"] <= last <= drift["at"]
