"""What `watch` draws on a terminal, for every detector."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

import fourrates as fr
from fourrates.alerts import finding_alert
from fourrates.baselines import DETECTORS
from fourrates.cli.lines import now_and_normal, warned_rates
from fourrates.cli.picture import WIDTH, Picture, bar
from fourrates.findings import Finding, RateState, Share, Shift
from fourrates.plain import finding_record
from fourrates.watch import Watch

HOSTILE = "[bold]\x1b[31m[/nothing]"


def drawn(picture):
    out = io.StringIO()
    Console(file=out, width=160, height=60, color_system=None).print(picture.picture())
    return out.getvalue()


def picture_of(detector, name="log.csv"):
    watch = Watch(detector)
    watch.segments.begin([None])
    watch.segments.detectors[0] = detector
    return Picture(watch, True, name)


def events(size, right, seed=0):
    random = np.random.default_rng(seed)
    y_true = random.integers(0, 2, size)
    return y_true, np.where(random.random(size) < right, y_true, 1 - y_true)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DETECTORS.values(), ids=DETECTORS)
def test_every_detector_is_drawn_before_its_first_event_and_after_each_drift(kind):
    detector = kind()
    picture = picture_of(detector)
    assert "0 events" in drawn(picture)
    drifts = 0
    for y_true, y_pred in (events(2500, 0.95), events(500, 0.4, seed=1)):
        for truth, pred in zip(y_true.tolist(), y_pred.tolist(), strict=True):
            warned_rates(detector)
            if (drift := detector.update(truth, pred)) is not None:
                picture.show(finding_alert(drift, stream="s", origin="x"))
                drifts += 1
    assert drifts
    text = drawn(picture)
    assert "s drifted: " in text
    assert "nan" not in text
    for name in detector.rates:
        assert name in text


def test_four_rates_shows_estimate_normal_and_evidence():
    detector = fr.FourRates(reference=[[900, 100], [200, 800]])
    detector.update_many(*events(300, 0.85))
    lines = [line for line in drawn(picture_of(detector)).splitlines() if "tpr" in line or "ppv" in line]
    tpr, ppv = sorted(lines, key=lambda line: "ppv" in line)
    assert "│" in tpr.strip("│ ")
    assert {*"●%"} <= {*tpr}
    assert f"{detector.rates['tpr'].normal.value:.3f}" in tpr
    assert "●" in ppv
    assert "%" not in ppv  # precisions are not judged by themselves


def test_a_bar_has_its_dot_at_the_estimate_and_ends_at_the_interval_of_normal():
    state = RateState(n=50, estimate=0.25, normal=Share(0.75, 0.7, 0.8, 900), evidence=0.5)
    text = bar(state, "green").plain
    assert len(text) == WIDTH
    assert text.index("●") == round(0.25 * (WIDTH - 1))
    assert (text.index("│"), text.rindex("│")) == (round(0.7 * (WIDTH - 1)), round(0.8 * (WIDTH - 1)))
    assert now_and_normal(state) == (0.25, 0.75)
    assert bar(RateState(n=0, estimate=float("nan")), "green").plain.strip() == ""


def test_after_a_drift_normal_stays_and_the_open_drift_is_on_top():
    y_true, y_pred = events(900, 0.9)
    watch = Watch(fr.FourRates(reference=[[900, 100], [100, 900]]))
    watch.update({"y_true": y_true, "y_pred": np.where(y_true == 1, np.arange(900) % 2, y_pred)})
    out = io.StringIO()
    Console(file=out, width=80, height=40, force_terminal=True, color_system="256").print(
        Picture(watch, True, "log.csv").picture()
    )
    lines = out.getvalue().splitlines()
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    assert plain[0].startswith("▼ tpr 0.")
    assert plain[1].startswith("  "), "what does not fit is indented"
    (row,) = [line for line in lines if "tpr" in line and "●" in line]
    assert f"{watch.segments[None].rates['tpr'].normal.value:.3f}" in row
    orange, blue = "38;5;208", "38;5;33m"
    assert orange in lines[0]
    assert orange in row
    assert blue not in row
    assert all(len(line) <= 80 for line in plain)


def test_a_warning_of_four_rates_names_the_rate_that_the_evidence_is_about():
    detector = fr.FourRates(reference=[[900, 100], [100, 900]])
    while not detector.warning_detected:
        detector.update(1, 0)
        detector.update(0, 0)
    named = warned_rates(detector)
    assert [one["rate"] for one in named][-1] == "tpr"
    assert all(one["evidence"] > 0 for one in named)
    picture = picture_of(detector)
    picture.show({"kind": "warning", "at": detector.events - 1, "rates": named})
    assert f"(alarm level {named[-1]['evidence']:.0%})" in drawn(picture)


def test_names_from_the_data_are_neither_markup_nor_escape_sequences():
    detector = fr.LFR(labels=[HOSTILE, "b", "c"])
    picture = picture_of(detector, HOSTILE)
    change = fr.RateChange(f"recall:{HOSTILE}", "down", 5.0, 4.0, None, 9)
    drift = fr.Drift(at=5, since=3, changes=(change,), confusion=((1, 0), (0, 1)))
    picture.show(finding_alert(drift, stream=HOSTILE, origin="x"))
    picture.show(
        {"kind": "warning", "at": 3, "rates": [{"rate": f"recall:{HOSTILE}", "statistic": None, "expected": None}]}
    )
    text = drawn(picture)
    assert "\x1b" not in text
    assert text.count(r"[bold]\x1b[31m[/nothing]") >= 4


def test_what_becomes_of_a_drift_and_shifts_are_told_as_such():
    picture = picture_of(fr.FourRates())
    low, high = Share(0.5, 0.4, 0.6, 90), Share(0.9, 0.8, 1.0, 90)
    fall, back = (
        fr.RateChange("tpr", direction, 1e5, 1e5, None, 9, None, before, after)
        for direction, before, after in (("down", high, low), ("up", low, high))
    )
    drift = fr.Drift(at=40, since=35, changes=(fall,), confusion=((1, 0), (0, 1)), started=30)
    confirmation = Finding(kind="confirmation", at=45, changes=(fall,), about=drift)
    recovery = Finding(kind="recovery", at=50, changes=(back,), started=42, about=drift, closes=True)
    for finding in (drift, confirmation, recovery):
        picture.show(finding_alert(finding, stream="s", origin="x"))
    shift = Shift(at=60, started=55, before=Share(0.3, 0.2, 0.4, 90), after=Share(0.5, 0.4, 0.6, 9))
    picture.show(finding_record(shift, utc=False))
    text = drawn(picture)
    drifted = "s drifted: tpr (positives caught) fell from 0.900 to about 0.500"
    assert f"{drifted}. Since about event 30, found at event 40" in text
    assert "s has drifted, now confirmed: tpr (positives caught) " in text
    assert "s recovered: tpr (positives caught) 0.900. Closed at event 50" in text
    assert "event 60  the class mix shifted, share of positives 0.300 → 0.500" in text
    assert "1 drift," in text
