"""The report as text: what it says, that it needs nothing else, and its size."""

import re

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.report import page
from fourrates.run import Run
from fourrates.streams import SCENARIOS, fraud
from fourrates.trace import Trace


def report(source, detector, **options):
    run = Run(detector, Trace)
    events = io.read(source, labels=detector.parameters["labels"], **options)
    found = [one for batch in events for one in run.take(batch, events.keys)]
    return page(run, events, found), found


def test_the_headline_and_every_drift_are_words_in_the_page():
    stream = fraud(seed=1)
    frame = {"y_true": stream.y_true, "y_pred": stream.y_pred, "timestamp": stream.times}
    text, found = report(frame, fr.LFR(detect=1e-6))
    when = str(found[0].at.time.astype("M8[s]")).replace("T", " ")
    assert f"<h1><em>Drifted</em>: tpr fell, {when}</h1>" in text
    for one in found:
        assert f"event {one.drift.at:,}" in text
        assert f"{one.drift.since:,} to\n{one.drift.at:,}" in text or f"{one.drift.since:,} to {one.drift.at:,}" in text
    assert "1e-06" in text
    assert "timestamp" in text


def test_many_drifts_leave_the_charts_in_sight():
    truth, guess = SCENARIOS["Balance1"].stream(seed=3, length=100_000, change=100_000)
    text, found = report((truth, guess), fr.LFR(detect=1e-3))
    assert len(found) > 100
    assert f"<summary>{len(found) - 4:,} more</summary>" in text
    assert text.count('class="drift"') == 100


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


def test_names_from_the_data_are_escaped():
    nasty = "</script><script>alert(1)</script>"
    truth = ["a", nasty] * 300 + ["a"] * 40
    guess = ["a", nasty] * 300 + [nasty] * 40
    frame = {"y_true": truth, "y_pred": guess, "who": [nasty] * len(truth)}
    detector = fr.LFR(labels=["a", nasty])
    text, found = report(frame, detector, columns=io.Columns(by="who"))
    assert found
    assert nasty not in text


def test_many_classes_and_many_streams_fit():
    random = np.random.default_rng(1)
    size = 60_000
    truth = random.integers(0, 30, size)
    guess = np.where(random.random(size) < 0.8, truth, random.integers(0, 30, size))
    frame = {"y_true": truth, "y_pred": guess, "model": np.array(list("abcdef"))[random.integers(0, 6, size)]}
    text, _ = report(frame, fr.LFR(labels=range(30)), columns=io.Columns(by="model"))
    assert len(text) < 2_000_000
    assert '<option value="1">' in text


def test_ten_million_events_make_a_page_of_less_than_two_megabytes():
    """A stable stream of 200,000 events fifty times over, with the false alarms that gives."""
    truth, guess = SCENARIOS["Balance1"].stream(seed=3, length=200_000, change=200_000)
    run = Run(fr.LFR(), Trace)
    found = []
    for _ in range(50):
        for batch in (events := io.read((truth, guess))):
            found += run.take(batch)
    assert run.events == 10_000_000
    text = page(run, events, found)
    assert len(text.encode()) < 2_000_000


@pytest.mark.parametrize("streams", [0, 1])
def test_a_picture_has_a_panel_for_each_rate(streams):
    from fourrates.plot import figure

    run = Run(fr.LFR(), Trace)
    found = [one for batch in io.read(SCENARIOS["Imbalance2"].stream(seed=7)) for one in run.take(batch)]
    drawing = figure(run.traces[None], found * streams, "a title")
    assert drawing.axes[0].get_ylabel() == ("tpr" if streams else "tnr")
    assert len(drawing.axes) == 4
