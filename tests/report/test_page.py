"""The report as text: what it says, that it needs nothing else, and its size."""

import base64
import hashlib
import itertools
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.baselines import DETECTORS
from fourrates.plain import KINDS
from fourrates.plot import DRIFT, END, drawn, save_figure
from fourrates.report import page
from fourrates.report.facts import gather
from fourrates.report.words import Words
from fourrates.result import Findings
from fourrates.streams import SCENARIOS, fraud
from fourrates.watch import Watch
from fourrates.watch.trace import Trace


def report(source, detector, **options):
    run = Watch(detector, trace=Trace)
    events = io.read(source, labels=detector.parameters["labels"], **options)
    found = [one for batch in events for one in run.update(batch, events.keys)]
    return page(Findings(run, events, found, [])), found


def words_of(text):
    parser = Elements()
    parser.feed(re.sub("<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL))
    return re.sub(r"\s+", " ", parser.words)


def headline(text):
    (found,) = re.findall("<h1>(.*)</h1>", text)
    return re.sub("<.*?>", "", found)


def tiles(text):
    """The figures of the verdict, by name, each with what it rests on."""
    found = re.findall(r"<div><dt>(.*?)</dt><dd><b>(.*?)</b><span>(.*?)</span>", text)
    return {name: (figure, basis) for name, figure, basis in found}


def cut(stream, end):
    return {"y_true": stream.y_true[:end], "y_pred": stream.y_pred[:end], "timestamp": stream.times[:end]}


def test_every_finding_is_listed_with_its_rates_before_and_after():
    text, found = report(cut(fraud(seed=5), 200_000), fr.FourRates(730_500))
    assert [one.kind for one in found] == ["drift", "confirmation", "drift", "confirmation", "recovery", "recovery"]
    words = words_of(text)
    assert re.findall(r"<summary><b class=.*?>. (.*?)</b>", text)[::-1] == [
        KINDS[one.kind].capitalize() for one in found
    ]
    for one in found:
        assert f"(event {one.at:,})" in words
        if one.started_between is not None:
            assert "(events {:,} to {:,})".format(*one.started_between) in words
        for change in one.changes:
            assert f"{change.before.value:.3f} → {change.after.value:.3f}" in words
    assert "One false alarm in 730,500 events" in words


def test_the_verdict_says_what_the_data_says():
    """The demo's stream, open: normal and now are the shares of positives that were caught, counted here."""
    stream = fraud(seed=5)
    end = stream.changes[1]
    text, found = report(cut(stream, end), fr.FourRates(730_500))
    caught = (stream.y_pred == 1)[:end][stream.y_true[:end] == 1]
    at = np.flatnonzero(stream.y_true[:end] == 1)
    normal, now = caught[at < found[0].started], caught[at > found[0].at]
    assert headline(text) == f"Drifted: tpr fell from {normal.mean():.3f} to {now.mean():.3f}"
    shown = tiles(text)
    assert [*shown] == ["Normal", "Now", "Since about", "Status"]
    assert shown["Now"][0] == f"{now.mean():.3f}"
    assert shown["Now"][1].endswith(f", of {now.size:,} positives")
    started = str(stream.times[found[0].started].astype("M8[m]")).replace("T", " ")
    assert shown["Since about"][0] == started
    assert shown["Status"][0] == "Open, confirmed"


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (0, r"No drift: a fall of \d+ points in tpr would have been found within \d+ hours"),
        (1, r"Drifted: tpr fell from 0.7\d\d to 0.2\d\d"),
        (2, r"Recovered: tpr is back at 0.7\d\d \(normal 0.7\d\d\)"),
    ],
)
def test_the_headline_says_how_things_are_at_the_end(end, wanted):
    """The demo's stream: tpr falls on day 6 and is repaired on day 8."""
    stream = fraud(seed=5)
    text, _ = report(cut(stream, (*stream.changes, 200_000)[end]), fr.FourRates(730_500))
    assert re.fullmatch(wanted, headline(text)), headline(text)


def test_three_rows_are_too_few_to_say_anything():
    text, _ = report(([1, 0, 1], [1, 0, 0]), fr.FourRates())
    assert headline(text).startswith("Too few rows to say anything: needs about ")
    assert "no drift" not in words_of(text).lower()


def test_of_several_segments_the_one_with_most_harm_comes_first():
    random = np.random.default_rng(2)
    size = 60_000
    model = random.integers(0, 5, size)
    truth = random.integers(0, 2, size)
    after = np.arange(size) > size // 2
    share = np.where(after & (model == 1), 0.7, np.where(after & (model == 3), 0.4, 0.9))
    pred = np.where(random.random(size) < share, truth, 1 - truth)
    frame = {"y_true": truth, "y_pred": pred, "model": np.array(list("abcde"))[model]}
    for detector in (fr.FourRates(1e6), fr.LFR(detect=1e-7)):
        text, found = report(frame, detector, columns=io.Columns(by="model"))
        assert {"b", "d"} <= {one.segment for one in found}
        assert headline(text).startswith("Drifted in 2 of 5 segments: most in d: ")
        rows = re.findall('<i class="mark (.*?)"></i><span class="name">(.)</span>', text)
        assert rows[:2] == [("drifted", "d"), ("drifted", "b")]
        assert "drifted" not in {standing for standing, _ in rows[2:]}
        assert re.findall('<option value="0">(.)</option>', text) == ["d"]


def test_cells_are_coloured_only_where_a_rate_is_away():
    random = np.random.default_rng(4)
    size = 40_000
    truth = random.integers(0, 3, size)
    bad = (np.arange(size) > size // 2) & (truth == 2)
    pred = np.where(random.random(size) < np.where(bad, 0.6, 0.9), truth, (truth + 1) % 3)
    frame = {"y_true": truth, "y_pred": pred, "who": np.full(size, "x")}
    text, _ = report(frame, fr.FourRates(1e6, labels=range(3)), columns=io.Columns(by="who"))
    where, changed = text.split('id="h-where"')[1].split('id="h-changed"')
    shades = re.findall('<td class="(.*?)" title', where)
    assert shades == ["none", "none", "down4"]
    changed = changed.split("</table>")[0]
    cells = re.findall('<td class="(.*?)" title=".*?">(.*?)</td>', changed)
    before, after = (slice(size // 2), slice(size // 2 + 1, None))
    moved = [100 * (np.mean(pred[part][truth[part] == 2] == 0)) for part in (before, after)]
    assert float(cells[6][1]) == pytest.approx(moved[1] - moved[0], abs=1)  # the start is an estimate
    assert [shade[:-1] for shade, _ in cells[6:]] == ["down", "non", "down"]
    assert {shade for shade, _ in cells[:6]} == {"none"}


def test_what_to_do_names_the_rows_and_whether_they_are_enough(tmp_path):
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 12_000)
    bad = (np.arange(12_000) >= 8000) & (truth == 1)
    pred = np.where(random.random(12_000) < np.where(bad, 0.5, 0.9), truth, 1 - truth)
    path = tmp_path / "it's data.csv"
    for end, enough in ((8060, "too few, wait for 200 rows"), (12_000, "enough to retrain on")):
        path.write_text("y_true,y_pred\n" + "".join(f"{a},{b}\n" for a, b in zip(truth, pred, strict=True))[: 4 * end])
        text, (drift, *_) = report(path, fr.FourRates(1e5))
        words = words_of(text)
        for advice in ("Roll back", "Repair", "Retrain", "Accept"):
            assert advice in words
        assert f"rows {drift.started_row:,} to {end:,} of " in words
        assert enough in words
    (command,) = [unescape(one) for one in re.findall("<code>(python.*?)</code>", text)]
    pytest.importorskip("pandas")
    subprocess.run(command.replace("python -c", f"{sys.executable} -c", 1), shell=True, check=True, cwd=tmp_path)
    rows = (tmp_path / "retrain.csv").read_text().splitlines()[1:]
    assert rows == [f"{a},{b}" for a, b in zip(truth, pred, strict=True)][drift.started_row - 1 :]


@pytest.mark.parametrize("seen", [21_000, 20_060, 1])
def test_a_drift_that_a_rate_joined_is_dated_by_the_rate_it_leads_with(seen):
    """tnr falls a little at 10,000 and tpr a lot at 20,000; also if an earlier run found both."""
    random = np.random.default_rng(5)
    size, at = 24_000, np.arange(24_000)
    truth = random.integers(0, 2, size)
    fallen = np.where(truth == 1, 0.6 * (at >= 20_000), 0.15 * (at >= 10_000))
    times = np.datetime64("2026-01-01", "us") + np.cumsum(np.where(random.random(size) < 0.02, 3_000, 1)).astype(
        "m8[s]"
    )
    frame = {"y_true": truth, "y_pred": truth ^ (random.random(size) < 0.1 + fallen), "timestamp": times}
    run = Watch(fr.FourRates(100_000), trace=Trace)
    for part in (slice(0, seen), slice(seen, size)):
        events = io.read({name: column[part] for name, column in frame.items()})
        found = [one for batch in events for one in run.update(batch)]
    words = Words(gather(run, events, found), events)
    assert words.moved(words.worst).startswith("tpr fell from 0.")
    since = np.datetime64({one.name: one for one in words.tiles()}["Since about"].figure)
    assert abs(since - times[20_000]) < np.timedelta64(3, "h")
    roll_back, _, retrain, _ = words.advice()
    assert str(since).replace("T", " ") in roll_back[1]
    assert f"since about {str(since).replace('T', ' ')}" in str(run.now())
    (rows,) = re.findall(r"([\d,]+) rows since it started", retrain[1])
    assert abs(int(rows.replace(",", "")) - 4_000) < 150
    resumed = Watch.from_bytes(run.to_bytes(), Trace)  # which has found nothing itself
    assert ("Since about", str(since).replace("T", " ")) in [
        one[:2] for one in Words(gather(resumed, events, []), events).tiles()
    ]


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_has_a_page(name):
    """A fall so deep that each of them finds it."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 20_000)
    pred = np.where(random.random(20_000) < np.where(np.arange(20_000) < 10_000, 0.95, 0.3), truth, 1 - truth)
    text, found = report((truth, pred), DETECTORS[name]())
    assert found
    assert headline(text).startswith("Drifted: ")
    assert text.count('<details class="finding') == min(len(found), 100)
    assert "None" not in words_of(text)
    assert "nan" not in words_of(text)


def test_a_change_for_the_better_is_no_bad_news():
    truth, pred = fraud(seed=5).y_true, fraud(seed=5).y_pred
    text, found = report((truth, pred), fr.LFR(detect=1e-6))
    assert [one.worse for one in found] == [True, False]
    assert headline(text).startswith("Improved: tpr rose from 0.2")
    assert '<header class="recovered">' in text


def test_many_findings_are_folded_and_the_latest_listed():
    truth, pred = SCENARIOS["Balance1"].stream(seed=3, length=100_000, change=100_000)
    text, found = report((truth, pred), fr.LFR(detect=1e-3))
    assert len(found) > 100
    assert "<summary>92 earlier</summary>" in text
    assert text.count('<details class="finding') == 100
    assert f"event {found[-1].at:,}" in text
    assert f"{len(found) - 100:,} more are not listed" in text


def test_the_time_of_the_start_is_about_right():
    """Between a mark and the warning, whose times are known: within a hundredth of a day of the true one."""
    stream = fraud(seed=5)
    run = Watch(fr.FourRates(730_500), trace=Trace)
    events = io.read(cut(stream, 200_000))
    found = [one for batch in events for one in run.update(batch)]
    (facts,) = gather(run, events, found).streams
    for finding in (one for one in found if one.started is not None):
        true = stream.times[finding.started].astype("M8[us]").astype(np.int64)
        assert abs(np.interp(finding.started, *facts.clock()) - true) < 0.01 * 86_400e6


def test_shifts_of_the_class_mix_are_told_as_such():
    random = np.random.default_rng(3)
    size = 30_000
    part = np.arange(size) * 3 // size
    truth = (random.random(size) < np.where(part == 2, 0.6, 0.3)).astype(int)
    pred = np.where(random.random(size) < np.where((part == 1) & (truth == 1), 0.5, 0.9), truth, 1 - truth)
    text, found = report((truth, pred), fr.FourRates(1e6, reference=[[9000, 1000], [1000, 9000]]))
    assert any(one.kind == "recovery" for one in found)
    assert headline(text).startswith("Recovered: ")
    assert "Not drifts of the classifier.share of positives 0.302 → 0.8" in words_of(text)
    assert "20,000 events, 90.0% of them right" in text


def falls_and_comes_back(seed, tpr, streams=1):
    """In each stream tpr is .9, for a third of the events this, and .9 again; events of the streams take turns."""
    random, size = np.random.default_rng(seed), 18_000
    truth = random.integers(0, 2, streams * size)
    part = np.arange(truth.size) * 3 // truth.size
    pred = np.where(random.random(truth.size) < np.where((part == 1) & (truth == 1), tpr, 0.9), truth, 1 - truth)
    return {"y_true": truth, "y_pred": pred, "model": np.array(list("abc"))[np.arange(truth.size) % streams]}


def test_segments_that_recovered_are_counted():
    text, found = report(falls_and_comes_back(1, 0.6, streams=3), fr.FourRates(1e6), columns=io.Columns(by="model"))
    assert {one.segment for one in found if one.closes} == {*"abc"}
    assert re.match(r"Recovered in 3 of 3 segments: most in [abc]: tpr is back at 0.[89]", headline(text))
    assert text.count('<i class="mark recovered">') == 3


def test_a_rate_is_said_to_be_away_since_its_own_drift_and_not_that_of_another_rate():
    """tnr falls and stays, tpr falls later: the headline is about tpr, and so is its start."""
    random, size = np.random.default_rng(3), 60_000
    truth = random.integers(0, 2, size)
    event = np.arange(size)
    right = np.where((truth == 0) & (event > 20_000), 0.85, np.where((truth == 1) & (event > 40_000), 0.4, 0.9))
    pred = np.where(random.random(size) < right, truth, 1 - truth)
    text, found = report((truth, pred), fr.FourRates(1e5))
    assert {change.rate for one in found for change in one.changes} == {"tnr", "tpr"}
    assert headline(text).startswith("Drifted: tpr fell from 0.9")
    assert 39_900 < int(tiles(text)["Since about"][0].removeprefix("event ").replace(",", "")) < 40_200


def test_a_drift_that_was_withdrawn_is_listed_and_there_is_none():
    """A false alarm of a small budget, the first that is withdrawn."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 20_000)
    pred = np.where(random.random(truth.size) < 0.8, truth, 1 - truth)
    detector = fr.FourRates(500)
    detector.update_many(truth, pred)
    end = 1 + next(finding.at for finding in detector.findings if finding.kind == "withdrawal" and finding.closes)
    text, found = report((truth[:end], pred[:end]), fr.FourRates(500))
    assert found[-1].kind == "withdrawal"
    assert headline(text) == "No drift: an alarm was withdrawn, the events since do not support it"
    assert '<b class="good">○ Withdrawn</b>' in text
    assert "1 alarm in 605 events; 1.2 false ones expected; 1 withdrawn." in words_of(text)


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
    assert headline(page(Findings(run, events, [], []))).startswith("Drifted: tpr fell from 0.9")  # not an event yet
    assert [one for batch in events for one in run.update(batch)] == []
    since = slice(before[0].at + 1, 9_500)
    positives = data["y_true"][since] == 1
    tpr = (data["y_pred"][since] == 1)[positives].mean()
    normal = before[0].changes[0].before.value
    text = page(Findings(run, events, [], []))
    assert headline(text) == f"Drifted: tpr fell from {normal:.3f} to {tpr:.3f}"
    assert tiles(text)["Now"][1].endswith(f" of {positives.sum():,} positives")


def test_a_stream_without_a_drift_has_none():
    text, found = report(SCENARIOS["Balance1"].stream(seed=1, length=2000, change=2000), fr.LFR(detect=1e-9))
    assert found == []
    assert headline(text) == "No drift"


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
    text = page(Findings(run, events, found, []))
    assert len(text.encode()) < 2_000_000


@pytest.mark.slow
def test_a_picture_has_a_panel_for_each_rate_that_moved_in_each_segment_that_did():
    data = falls_and_comes_back(1, 0.6, streams=3)
    data["y_pred"] = np.where(data["model"] == "b", data["y_true"], data["y_pred"])
    run = Watch(fr.FourRates(1e6), trace=Trace)
    events = io.read(data, columns=io.Columns(by="model"))
    found = [one for batch in events for one in run.update(batch, events.keys)]
    assert sorted(panel.get_title("left") for panel in drawn(run, found).axes) == ["a: tpr", "c: tpr"]
    assert [panel.get_title("left") for panel in drawn(run, found, "b").axes] == ["b: tpr", "b: tnr"]


@pytest.mark.slow
def test_in_a_picture_nothing_overprints_and_recoveries_are_dashed_and_blue():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    run = Watch(fr.FourRates(730_500), trace=Trace)
    found = [one for batch in io.read(cut(fraud(seed=5), 200_000)) for one in run.update(batch)]
    drawing = drawn(run, found)
    FigureCanvasAgg(drawing).draw()
    boxes = [panel.get_tightbbox() for panel in drawing.axes]
    for above, below in itertools.pairwise(boxes):
        assert above.y0 >= below.y1
    for panel in drawing.axes:
        lines = {line.get_label(): (line.get_color(), line.get_linestyle()) for line in panel.get_lines()}
        assert lines["alarm"] == (DRIFT, "-")
        assert lines["recovery"] == (END, "--")


@pytest.mark.slow
def test_a_figure_is_saved_in_the_form_of_its_name(tmp_path):
    run = Watch(fr.FourRates(reference=[[900, 100], [200, 800]]), trace=Trace)
    found = run.update({"y_true": [1] * 60, "y_pred": [0] * 60})
    for suffix, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        path = tmp_path / f"rates.{suffix}"
        save_figure(run, found, path)
        assert path.read_bytes().startswith(magic)
    with pytest.raises(io.InputError, match=r"ends in \.png, \.svg or \.pdf"):
        save_figure(run, found, tmp_path / "rates.doc")


@pytest.mark.slow
def test_names_are_drawn_as_they_are_even_if_they_look_like_formulas(tmp_path):
    names = [r"$\frac$", r"[/x]$\alpha$"]
    truth = np.array(names * 300 + names[:1] * 60)
    pred = np.array(names * 300 + names[1:] * 60)
    frame = {"y_true": truth, "y_pred": pred, "who": np.full(truth.size, r"$\frac{1$ \x1b[31m [/y]")}
    run = Watch(fr.LFR(labels=[*names, "c"]), trace=Trace)
    events = io.read(frame, labels=[*names, "c"], columns=io.Columns(by="who"))
    found = [one for batch in events for one in run.update(batch, events.keys)]
    assert found
    save_figure(run, found, tmp_path / "x.svg")
    shown = (tmp_path / "x.svg").read_text()
    assert r"recall of $\frac$" in shown
    assert r"[/y]" in shown
