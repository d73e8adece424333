"""The report as text: what it says, that it needs nothing else, and its size."""

import base64
import hashlib
import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.baselines import detector_class
from fourrates.cli.options import NAMES
from fourrates.report import page
from fourrates.report.facts import gather
from fourrates.report.words import TITLES
from fourrates.streams import SCENARIOS, fraud
from fourrates.watch import Watch
from fourrates.watch.trace import Trace


def report(source, detector, **options):
    run = Watch(detector, trace=Trace)
    events = io.read(source, labels=detector.parameters["labels"], **options)
    found = [one for batch in events for one in run.update(batch, events.keys)]
    return page(run, events, found), found


def test_every_finding_is_told_with_its_rates_before_and_after():
    stream = fraud(seed=5)
    frame = {"y_true": stream.y_true, "y_pred": stream.y_pred, "timestamp": stream.times}
    text, found = report(frame, fr.FourRates(730_500))
    kinds = [one.kind for one in found]
    assert kinds == ["drift", "confirmation", "drift", "confirmation", "recovery", "recovery"]
    assert re.findall(r"<h3>\d\. (\w+)", text)[::-1] == [TITLES[kind] for kind in kinds]
    for one in found:
        assert f"event {one.at:,}" in text
        if one.started is not None:  # not of the confirmation of a rate that joined the episode
            assert f"event {one.started:,}" in text
        if one.kind == "drift":
            assert "events {:,} to {:,}".format(*one.started_between) in text
        for change in one.changes:
            before, after = (f'<b class="num">{share.value:.3f}</b>' for share in (change.before, change.after))
            assert f"from {before} to {after}" in text
    assert "at most one in 730,500 events" in text
    assert "timestamp" in text


def headline(text):
    (found,) = re.findall("<h1>(.*)</h1>", text)
    return re.sub("<.*?>", "", found)


def test_the_headline_says_how_things_stand_at_the_end():
    """The demo's stream: tpr falls on day 6 and is repaired on day 8."""
    stream = fraud(seed=5)
    first, second = stream.changes
    for end, wanted in (
        (first, "Stable: "),
        (second, r"Drifted: tpr 0.2\d\d \(.*; normal 0.7.*since about 2026-01-0[67] .*\(confirmed\)"),
        (stream.y_true.size, r"Recovered: tpr is back at 0.7\d\d \(.* since 2026-01-0[89]"),
    ):
        frame = {"y_true": stream.y_true[:end], "y_pred": stream.y_pred[:end], "timestamp": stream.times[:end]}
        text, _ = report(frame, fr.FourRates(730_500))
        assert re.match(wanted, headline(text)), headline(text)


@pytest.mark.slow
def test_of_many_streams_the_one_with_the_strongest_last_drift_comes_first():
    random = np.random.default_rng(2)
    size = 30_000
    model = random.integers(0, 5, size)
    truth = random.integers(0, 2, size)
    after = np.arange(size) > size // 2
    share = np.where(after & (model == 1), 0.7, np.where(after & (model == 3), 0.4, 0.9))
    pred = np.where(random.random(size) < share, truth, 1 - truth)
    frame = {"y_true": truth, "y_pred": pred, "model": np.array(list("abcde"))[model]}
    text, found = report(frame, fr.LFR(detect=1e-7), columns=io.Columns(by="model"))
    assert {one.segment for one in found} == {"b", "d"}
    assert headline(text).startswith("2 of 5 segments drifted: most of all d, where ")
    listed = re.findall('<th scope="row"><span class="name">(.)</span>', text)
    assert listed[:2] == ["d", "b"]
    assert re.findall('<option value="0">(.)</option>', text) == ["d"]
    only = {name: column[model != 3] for name, column in frame.items()}
    text, _ = report(only, fr.LFR(detect=1e-7), columns=io.Columns(by="model"))
    assert headline(text).startswith("1 of 4 segments drifted: b, where ")


def test_what_has_come_since_the_last_drift_is_told_where_its_window_is_too_small():
    truth, pred = (side[:5300] for side in SCENARIOS["Imbalance2"].stream(seed=1))  # then tnr rises too
    text, found = report((truth, pred), fr.FourRates(100_000))
    assert [one.kind for one in found] == ["drift", "confirmation"]
    seen = len(truth) - found[0].window.start
    assert f"too few to train on, wait for more; by the end of the data there are {seen:,}." in text


@pytest.mark.parametrize("name", NAMES)
def test_every_detector_has_a_page(name):
    """A fall so deep that each of them finds it."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 20_000)
    pred = np.where(random.random(20_000) < np.where(np.arange(20_000) < 10_000, 0.95, 0.3), truth, 1 - truth)
    detector = detector_class(name)()
    text, found = report((truth, pred), detector)
    assert found
    assert headline(text).startswith("Drifted: ")
    assert text.count('<li class="drift') == min(len(found), 100)
    assert ("significance level" in text) == (name in ("LFR", "NFR"))
    assert "None" not in re.sub("<script.*", "", text, flags=re.DOTALL)


def test_many_drifts_leave_the_charts_in_sight():
    truth, pred = SCENARIOS["Balance1"].stream(seed=3, length=100_000, change=100_000)
    text, found = report((truth, pred), fr.LFR(detect=1e-3))
    assert len(found) > 100
    assert f"<summary>{len(found) - 4:,} more</summary>" in text
    assert text.count('<li class="drift') == 100
    assert f"event {found[-1].at:,}" in text  # the latest are those that are told


def test_the_time_of_the_start_is_about_right():
    """Between a mark and the warning, whose times are known: within a hundredth of a day of the true one."""
    stream = fraud(seed=5)
    frame = {"y_true": stream.y_true, "y_pred": stream.y_pred, "timestamp": stream.times}
    run = Watch(fr.FourRates(730_500), trace=Trace)
    events = io.read(frame)
    found = [one for batch in events for one in run.update(batch)]
    for finding in (one for one in gather(run, events, found).findings if one.started is not None):
        true = stream.times[finding.started.event].astype("M8[us]").astype(np.int64)
        assert abs(finding.started.time - true) < 0.01 * 86_400e6


def test_recoveries_and_shifts_are_told_as_such():
    random = np.random.default_rng(3)
    size = 30_000
    part = np.arange(size) * 3 // size
    truth = (random.random(size) < np.where(part == 2, 0.6, 0.3)).astype(int)
    pred = np.where(random.random(size) < np.where((part == 1) & (truth == 1), 0.5, 0.9), truth, 1 - truth)
    text, found = report((truth, pred), fr.FourRates(1e6, reference=[[9000, 1000], [1000, 9000]]))
    recoveries = sum(one.kind == "recovery" for one in found)
    assert recoveries
    assert len(re.findall(r"<h3>\d+\. Recovered, ", text)) == recoveries
    assert headline(text).startswith("Recovered: ")
    assert "Shifts of the classes" in text
    assert "the share of positives went from 0.302 to 0.8" in text
    assert "a reference of 20,000 events, 90.0% of them right" in text


def falls_and_comes_back(seed, tpr, streams=1):
    """In each stream tpr is .9, for a third of the events this, and .9 again; events of the streams take turns."""
    random, size = np.random.default_rng(seed), 18_000
    truth = random.integers(0, 2, streams * size)
    part = np.arange(truth.size) * 3 // truth.size
    pred = np.where(random.random(truth.size) < np.where((part == 1) & (truth == 1), tpr, 0.9), truth, 1 - truth)
    return {"y_true": truth, "y_pred": pred, "model": np.array(list("abc"))[np.arange(truth.size) % streams]}


def test_where_several_streams_drifted_all_that_recovered_are_counted():
    text, found = report(falls_and_comes_back(1, 0.6, streams=3), fr.FourRates(1e6), columns=io.Columns(by="model"))
    assert {one.segment for one in found if one.closes} == {*"abc"}
    assert headline(text) == "Recovered: 3 segments that drifted are back at normal"
    assert len(re.findall('<i class="dot recovered"></i>tpr is back at 0.[89]', text)) == 3


def test_a_drift_that_was_withdrawn_is_listed_and_the_stream_is_stable():
    """A false alarm of a small budget, the first that is withdrawn."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 20_000)
    pred = np.where(random.random(truth.size) < 0.8, truth, 1 - truth)
    detector = fr.FourRates(500)
    detector.update_many(truth, pred)
    end = 1 + next(finding.at for finding in detector.findings if finding.kind == "withdrawal" and finding.closes)
    text, found = report((truth[:end], pred[:end]), fr.FourRates(500))
    assert found[-1].kind == "withdrawal"
    assert re.fullmatch("Stable: .* withdrawn, the events since the alarm do not bear it out", headline(text))
    assert "<h3>2. Withdrawn, " in text
    assert "The events since the alarm do not bear it out." in text
    assert "1 drift and 1 withdrawal in " in text


def test_a_run_that_is_resumed_tells_of_the_drift_that_is_open():
    """Found in the part before: there is nothing to list, and the headline says what the detector says."""
    data = falls_and_comes_back(1, 0.6)
    data["time"] = np.datetime64("2026-01-01", "s") + np.arange(data["y_true"].size)
    first, second = (
        {name: column[part] for name, column in data.items()} for part in (slice(9_000), slice(9_000, 9_500))
    )
    run = Watch(fr.FourRates(1e6), trace=Trace)
    before = [one for batch in io.read(first) for one in run.update(batch)]
    run = Watch.from_bytes(run.to_bytes(), Trace)
    events = io.read(second)
    assert [one for batch in events for one in run.update(batch)] == []
    since = slice(before[0].at + 1, 9_500)
    positives = data["y_true"][since] == 1
    tpr = (data["y_pred"][since] == 1)[positives].mean()
    normal = before[0].changes[0].before.value
    assert re.match(
        rf"Drifted: tpr {tpr:.3f} \(.* of {positives.sum():,}; normal {normal:.3f}\), since about 2026-01-01 01:",
        headline(page(run, events, [])),
    )


def test_a_calm_stream_is_said_to_be_calm():
    text, found = report(SCENARIOS["Balance1"].stream(seed=1, length=2000, change=2000), fr.LFR(detect=1e-9))
    assert found == []
    assert "<h1><em>No drift</em></h1>" in text


def test_the_page_needs_nothing_else():
    text, _ = report(SCENARIOS["Imbalance2"].stream(seed=7), fr.LFR())
    outside = re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)[^"'#]""", text)
    assert outside == []
    assert "@import" not in text
    assert "The MIT License" in text


NASTY = [
    "</script><script>alert(1)</script>",
    "{{data}}<img src=x onerror=alert(1)>",
    "{{ policy }}{% raw %}",
    "<!--<script>",
    "\u2028\u2029\x1b[31m&amp;'\"",
]


@pytest.mark.parametrize("nasty", NASTY)
def test_names_from_the_data_are_text_and_nothing_else(nasty):
    truth = ["a", nasty] * 300 + ["a"] * 40
    pred = ["a", nasty] * 300 + [nasty] * 40
    frame = {"y_true": truth, "y_pred": pred, nasty: [nasty] * len(truth)}
    detector = fr.LFR(labels=["a", nasty])
    text, found = report(frame, detector, columns=io.Columns("y_true", "y_pred", by=nasty))
    assert found
    assert (nasty in text) == (not set("<&\u2028") & set(nasty))
    assert len(re.findall("<script", text)) == len(re.findall("</script", text)) == 3
    (data,) = re.findall('<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert not set("<>&\u2028\u2029") & set(data)
    assert json.loads(data)["streams"]
    parser = Elements()
    parser.feed(text)
    assert nasty.replace("\u2028\u2029\x1b", r"\u2028\u2029\x1b") in parser.words
    assert "img" not in parser.names


class Elements(HTMLParser):
    """The names of the elements of a page, and its text."""

    def __init__(self):
        super().__init__()
        self.names, self.words = set(), ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)

    def handle_data(self, data):
        self.words += data


def test_only_the_scripts_and_styles_of_the_page_may_run():
    text, _ = report(SCENARIOS["Imbalance2"].stream(seed=7), fr.LFR())
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)"', text)
    rules = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"

    def hashes(pattern):
        parts = re.findall(pattern, text, re.DOTALL)
        return [f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" for part in parts]

    assert rules["script-src"].split() == hashes("<script>(.*?)</script>")
    assert rules["style-src"].split() == hashes("<style>(.*?)</style>")
    assert " style=" not in text


def test_many_classes_and_many_streams_fit():
    random = np.random.default_rng(1)
    size = 60_000
    truth = random.integers(0, 30, size)
    pred = np.where(random.random(size) < 0.8, truth, random.integers(0, 30, size))
    frame = {"y_true": truth, "y_pred": pred, "model": np.array(list("abcdef"))[random.integers(0, 6, size)]}
    text, _ = report(frame, fr.LFR(labels=range(30)), columns=io.Columns(by="model"))
    assert len(text) < 2_000_000
    assert '<option value="1">' in text


@pytest.mark.slow
def test_ten_million_events_make_a_page_of_less_than_two_megabytes():
    """A stable stream of 200,000 events fifty times over, with the false alarms that gives."""
    truth, pred = SCENARIOS["Balance1"].stream(seed=3, length=200_000, change=200_000)
    run = Watch(fr.LFR(), trace=Trace)
    found = []
    for _ in range(50):
        for batch in (events := io.read((truth, pred))):
            found += run.update(batch)
    assert run.events == 10_000_000
    text = page(run, events, found)
    assert len(text.encode()) < 2_000_000


@pytest.mark.slow
@pytest.mark.parametrize("streams", [0, 1])
def test_a_picture_has_a_panel_for_each_rate(streams):
    from fourrates.plot import figure

    run = Watch(fr.LFR(), trace=Trace)
    found = [one for batch in io.read(SCENARIOS["Imbalance2"].stream(seed=7)) for one in run.update(batch)]
    drawing = figure(run.traces[None], found * streams, "a title")
    assert drawing.axes[0].get_ylabel() == ("tpr" if streams else "tnr")
    assert len(drawing.axes) == 4


@pytest.mark.slow
def test_names_are_drawn_as_they_are_even_if_they_look_like_formulas(tmp_path):
    from fourrates.plot import save_figure

    names = [r"$\frac$", r"[/x]$\alpha$"]
    truth = np.array(names * 300 + names[:1] * 60)
    pred = np.array(names * 300 + names[1:] * 60)
    frame = {"y_true": truth, "y_pred": pred, "who": np.full(truth.size, r"$\frac{1$ \x1b[31m [/y]")}
    run = Watch(fr.LFR(labels=[*names, "c"]), trace=Trace)
    events = io.read(frame, labels=[*names, "c"], columns=io.Columns(by="who"))
    found = [one for batch in events for one in run.update(batch, events.keys)]
    assert found
    save_figure(run, found, tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text()
    assert r"recall:$\frac$" in drawn
    assert r"[/y]" in drawn
