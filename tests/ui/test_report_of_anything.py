"""Reports of anything in Chromium: names that try to run, 2 to 10 classes, every detector."""

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.baselines import DETECTORS
from fourrates.report import page as report
from fourrates.result import Findings
from fourrates.watch import Watch
from fourrates.watch.trace import Trace

pytest.importorskip("selenium", reason="selenium is not installed; make test-ui installs it")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from .test_report_in_a_browser import CUT, SIZES, errors, picture

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
    path.write_text(report(Findings(run, events, found, [])), encoding="utf-8")
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
    """Nothing is wider than the window, and no text is cut."""
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(CUT) == []


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


@pytest.mark.parametrize(("width", "scheme"), SIZES[::3])
def test_names_that_try_to_run_are_text_and_the_page_is_whole(opened, hostile, width, scheme):
    browser = opened(width, scheme=scheme, path=hostile)
    assert browser.execute_script("return window.ran") is None
    assert errors(browser) == []  # the policy had nothing to stop: nothing came in
    assert browser.find_elements(By.CSS_SELECTOR, "img, iframe, body svg svg, [onload], body style") == []
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 3
    text = browser.execute_script("return document.querySelector('main').textContent")
    for name in HOSTILE:
        shown = name.replace("\u2028\u2029\x1b", r"\u2028\u2029\x1b")
        assert shown[:90] in text
    assert browser.find_elements(By.CSS_SELECTOR, "h2")[-1].text == "Can I trust this?"
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
    assert len(browser.find_elements(By.CSS_SELECTOR, ".chart canvas")) == 1
    assert "Content Security Policy" in str(errors(browser))


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_any_number_of_classes_has_room(opened, tmp_path, classes):
    path = tmp_path / "report.html"
    names = [f"class {number}" for number in range(classes)]
    assert write(path, falling(names), fr.LFR(detect=1e-7, labels=names))
    for width, scheme in SIZES[::3]:
        browser = opened(width, scheme=scheme, path=path)
        assert errors(browser) == []
        check_layout(browser, width)
        assert len(browser.find_elements(By.CSS_SELECTOR, ".pair .heat tbody tr")) == classes
        if classes in (3, 10):
            picture(browser, f"classes-{classes}-{scheme}-{width}")


@pytest.mark.parametrize("name", DETECTORS)
def test_the_drifts_of_every_detector_are_drawn(opened, tmp_path, name):
    path = tmp_path / "report.html"
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 20_000)
    pred = np.where(random.random(20_000) < np.where(np.arange(20_000) < 10_000, 0.95, 0.3), truth, 1 - truth)
    assert write(path, {"y_true": truth, "y_pred": pred}, DETECTORS[name]())
    for width in (1440, 390):
        browser = opened(width, path=path)
        assert errors(browser) == []
        check_layout(browser, width)
        assert browser.find_elements(By.CSS_SELECTOR, ".chart canvas")


def test_the_band_is_where_the_drift_started(opened, tmp_path):
    path = tmp_path / "report.html"
    names = ["0", "1", "2"]
    found = write(path, falling(names), fr.FourRates(labels=names))
    browser = opened(path=path)
    marks = browser.execute_script("return fourrates.stream().marks")
    for finding, mark in zip(found, marks, strict=True):
        assert mark["found"] == finding.at
        if finding.kind == "drift":
            assert (mark["first"], mark["last"]) == finding.started_between
            assert mark["first"] <= mark["started"] <= mark["last"] <= mark["found"]
