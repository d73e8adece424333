"""What `fr.diagnose` says of streams in which one thing is wrong, and of those in which nothing is."""

import json
import tracemalloc

import numpy as np
import pytest

import fourrates as fr
from fourrates.cli import app
from fourrates.diagnosis.repeats import Ids
from fourrates.io import InputError

START = np.datetime64("2026-01-05T00:00:00", "us")  # a Monday


def stream(size=60_000, seed=0, positives=0.3, errors=0.1, per_day=2_000, **columns):
    """Independent events, evenly spaced; `errors` and `positives` may be arrays."""
    random = np.random.default_rng(seed)
    truth = (random.random(size) < positives).astype(int)
    wrong = random.random(size) < errors
    times = START + (np.arange(size) * (86_400_000_000 // per_day)).astype("m8[us]")
    return {"time": times, "y_true": truth, "y_pred": truth ^ wrong, **columns}


def diagnosed(frame, points=(), **options):
    """Without the delays of falls, which are simulated, unless some are asked for."""
    return fr.diagnose(frame, points=points, **options)


def problems(frame, **options):
    return " | ".join(diagnosed(frame, **options).problems)


def hours(frame):
    return (frame["time"] - START) / np.timedelta64(1, "h")


def test_nothing_is_wrong_with_independent_events():
    # Two seasons at 1/200: a sound stream is suspected of one in one of 100, and of dispersion in one of 50.
    for seed in range(10):
        found = diagnosed(stream(seed=seed))
        assert found.problems == ()
        assert "nothing here breaks what a budget assumes" in str(found)


def test_volume_mix_and_rates_are_those_of_the_file():
    frame = stream()
    found = diagnosed(frame)
    assert found.events == found.rows == 60_000
    assert found.clock.per_day == pytest.approx(2_000, rel=1e-3)
    assert found.clock.days == (2_000, 2_000, 2_000)
    assert found.confusion == tuple(
        tuple(int(((frame["y_true"] == t) & (frame["y_pred"] == g)).sum()) for g in (0, 1)) for t in (0, 1)
    )
    assert found.headline().startswith("60,000 events, 2026-01-05 00:00 to 2026-02-03 23:59: 2,000 a day")


def test_a_budget_is_told_in_alarms_a_month():
    found = diagnosed(stream())
    assert found.arl == pytest.approx(30.44 * 2_000, rel=1e-3)  # one a month is the default
    assert found.alarms_a_month == pytest.approx(1.0, rel=1e-3)
    found = diagnosed(stream(), arl=6_088)
    assert found.budget() == "budget: one false alarm in 6,088 events, which here is 10 a month: one in 3 days"
    assert diagnosed(stream(), budget="one a quarter").alarms_a_month == pytest.approx(1 / 3, rel=1e-2)
    pairs = stream()
    assert diagnosed((pairs["y_true"], pairs["y_pred"])).alarms_a_month is None


def test_what_dispersion_means_is_said():
    random = np.random.default_rng(5)
    wrong = np.repeat(random.random(10_000) < 0.1, 10)
    truth = (random.random(100_000) < 0.5).astype(int)
    found = diagnosed((truth, truth ^ wrong), arl=1e7)
    assert max(found.dispersion.values()) > 2
    assert not found.drifts
    worth = round(100 / max(found.dispersion.values()))
    assert f"your events are correlated: 100 of them are worth only {worth} independent ones" in "".join(found.problems)


def test_what_a_drift_may_make_of_errors_is_not_called_correlation(tmp_path, capsys):
    frame = stream()
    hour = hours(frame).astype(int)
    random = np.random.default_rng(1)
    worse = (hour > 400) & (random.random(hour.max() + 1)[hour] < 0.5)  # every other hour is bad from some day on
    frame["y_pred"] = frame["y_true"] ^ (random.random(hour.size) < np.where(worse, 0.4, 0.1))
    told = "perhaps because of the drift: 100 events count as "
    found = fr.detect(frame)
    assert found.drifts
    assert told in problems(frame)
    assert told in found.summary()
    assert told in found._repr_html_()
    table = zip(*frame.values(), strict=True)
    (tmp_path / "p.csv").write_text("time,y_true,y_pred\n" + "".join(f"{t},{y:d},{p:d}\n" for t, y, p in table))
    resumed = ["detect", str(tmp_path / "p.csv"), "--state", str(tmp_path / "state")]
    outputs = []
    for more in (["--report", str(tmp_path / "r.html")], []):  # the second time no finding is new, a drift is open
        assert app.run(resumed + more) == 0
        outputs.append(capsys.readouterr().err)
    for text in (*outputs, (tmp_path / "r.html").read_text(), str(found), str(diagnosed(frame))):
        assert "correlated" not in text
        assert "perhaps because of the drift" in " ".join(text.split())


@pytest.mark.parametrize(("period", "hours_each"), [("day", 24), ("week", 168)])
def test_a_season_of_errors_is_found_and_none_of_the_classes(period, hours_each):
    frame = stream(120_000)
    wave = np.sin(2 * np.pi * hours(frame) / hours_each)
    assert diagnosed(stream(120_000, positives=0.3 + 0.1 * wave)).season is None
    frame = stream(120_000, errors=0.1 * (1 + 0.6 * wave))
    assert diagnosed(frame).season == period
    assert any(f"errors follow the {period}" in said for said in fr.detect(frame).messages)
    assert f"errors follow the {period}" in problems(frame)


def test_ids_met_before_are_counted():
    frame = stream(10_000)
    frame["id"] = np.arange(10_000)
    assert diagnosed(frame).repeats.ids == 0
    frame["id"][5_000:5_100] = frame["id"][:100]
    found = diagnosed(frame)
    assert found.repeats.ids == 100
    assert "100 events have an id that was there before" in problems(frame)
    assert found.messages[0].startswith("ids in column 'id', labels in column 'y_true'")
    frame["order"] = frame.pop("id")
    assert diagnosed(frame).repeats.ids is None
    assert diagnosed(frame, id="order").repeats.ids == 100


def test_very_many_ids_are_counted_in_bounded_memory():
    ids = Ids(kept=1_000)
    random = np.random.default_rng(0)
    for start in range(0, 200_000, 10_000):
        ids.add(np.arange(start, start + 10_000))
    again = random.choice(200_000, 40_000, replace=False)
    ids.add(again)
    assert ids.is_estimate
    # 500 to 1,000 ids are remembered, of which a fifth come again: at least 100, a standard error of at most 10 %.
    assert ids.repeated == pytest.approx(40_000, rel=0.4)


def test_rows_like_the_row_before_are_counted_where_rows_can_be_told_apart():
    frame = stream(20_000)
    assert diagnosed(frame).repeats.rows == 0
    twice = np.sort(np.concatenate([np.arange(20_000), np.arange(0, 20_000, 10)]))
    repeated = {name: column[twice] for name, column in frame.items()}
    assert diagnosed(repeated).repeats.rows == 2_000
    assert "2,000 rows (9.1%) are like the row before" in problems(repeated)
    pairs = (repeated["y_true"], repeated["y_pred"])  # which are alike all the time
    assert diagnosed(pairs).repeats.rows is None


def test_every_event_twice_is_seen_in_bare_pairs():
    frame = stream(5_000)
    truth, pred = frame["y_true"], frame["y_pred"]
    assert "every event is there twice" in problems((np.repeat(truth, 2), np.repeat(pred, 2)))
    assert "every event is there twice" not in problems((truth, pred))
    assert "every event is there twice" not in problems((np.tile([0, 1], 5_000), np.tile([0, 1], 5_000)))


def test_times_that_run_backwards_are_counted_within_their_stream():
    frame = stream(10_000)
    frame["time"][5_000] -= np.timedelta64(3, "h")
    found = diagnosed(frame)
    assert found.clock.backwards == 1
    assert found.clock.largest_step == np.timedelta64(3 * 3_600_000 - 43_200, "ms")
    assert "times run backwards once, in frame, row 5,001 (" in problems(frame)
    # One model after the other: the clock begins again, but not within a model.
    both = {name: np.concatenate([column, column]) for name, column in stream(10_000).items()}
    assert diagnosed(both).clock.backwards == 1
    both["model"] = np.repeat(["a", "b"], 10_000)
    assert diagnosed(both, by="model").clock.backwards == 0


def test_one_class_only_is_said():
    frame = stream(1_000)
    frame["y_true"][:] = 0
    found = diagnosed(frame, points=[20])
    assert "every true label is 0, so nothing is known of the other classes" in " | ".join(found.problems)
    assert found.falls == ()


def test_a_threshold_that_no_score_reaches_is_said():
    frame = stream(1_000)
    frame["score"] = np.linspace(0, 0.43, 1_000)
    del frame["y_pred"]
    assert "no score reaches the threshold 0.5, the highest is 0.43" in problems(frame)
    assert "every score reaches the threshold -1" in problems(frame, threshold=-1)
    assert "threshold" not in problems(frame, threshold=0.2)
    frame = stream(1_000)
    frame["y_pred"][:] = 1
    assert "every prediction is 1" in problems(frame)


def test_rows_without_a_label_are_counted():
    frame = stream(1_000)
    frame["y_true"] = [None if i % 4 == 0 else int(y) for i, y in enumerate(frame["y_true"])]
    found = diagnosed(frame)
    assert (found.events, found.rows, dict(found.lacking)) == (750, 1_000, {"y_true": 250})
    assert "250 of 1,000 rows skipped: no label" in problems(frame)
    with pytest.raises(InputError, match="no row has both"):
        diagnosed({"y_true": [None] * 10, "y_pred": [1] * 10}, labels=(0, 1))


@pytest.mark.slow
def test_larger_falls_are_found_sooner_and_correlation_costs_its_share():
    frame = stream(60_000)
    found = fr.diagnose(frame, arl=100_000)
    for rate in ("tnr", "tpr"):
        delays = [one.median or np.inf for one in found.falls if one.rate == rate]
        assert len(delays) == 4
        assert delays == sorted(delays, reverse=True)
    fall = found.falls[-1]
    row = found.table()[1][-1]
    assert row[2] == f"{fall.median:,.0f} events"
    assert row[3].endswith(("minutes", "hours"))
    random = np.random.default_rng(6)
    wrong = np.repeat(random.random(6_000) < 0.1, 10)
    clumped = fr.diagnose((frame["y_true"], frame["y_true"] ^ wrong), arl=100_000, points=[20])
    tnr = next(one for one in clumped.falls if one.rate == "tnr")
    plain = next(one for one in found.falls if one.rate == "tnr" and one.before - one.after > 0.15)
    # Both medians come from 100 streams, with a standard error of 12 % each.
    assert tnr.median / plain.median == pytest.approx(clumped.dispersion["tnr"], rel=0.5)


def test_a_fall_that_a_false_alarm_would_precede_is_said_to_be_lost():
    found = fr.diagnose(stream(), arl=1_000, points=[1])
    assert all(fall.lost for fall in found.falls)
    assert "no sooner than a false alarm" in str(found)


def test_it_can_be_printed_kept_and_shown():
    found = diagnosed(stream(), points=[20])
    assert json.loads(json.dumps(found.to_dict()))["per_day"] == pytest.approx(2_000, rel=1e-3)
    assert repr(found).startswith("<Diagnosis: 60,000 events")
    shown = found._repr_html_()
    assert "<table " in shown
    assert "2,000 a day" in shown
    with pytest.raises(AttributeError):
        found.events = 0
    names = diagnosed({"y_true": ["<b>", "c"] * 50, "y_pred": ["<b>", "c"] * 50})
    assert "&lt;b&gt;" in names._repr_html_()
    assert "<b>" not in names._repr_html_().replace("<b>100 events", "")


def test_many_classes_are_told_by_name():
    random = np.random.default_rng(7)
    truth = random.choice(["cat", "dog", "owl"], 5_000)
    pred = np.where(random.random(5_000) < 0.9, truth, "cat")
    found = diagnosed((truth, pred), points=[20])
    assert found.labels == ("cat", "dog", "owl")
    assert {one.rate for one in found.falls} == {"recall:cat", "recall:dog", "recall:owl"}
    assert "classes: cat 3" in str(found)


@pytest.mark.slow
def test_a_stream_is_read_once_in_bounded_memory():
    frame = stream(100_000)
    pairs = list(zip(frame["y_true"].tolist(), frame["y_pred"].tolist(), strict=True))
    peaks = []
    for copies in (1, 4):
        tracemalloc.start()
        found = diagnosed(pair for _ in range(copies) for pair in pairs)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.events == copies * 100_000
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.slow
def test_files_and_frames_give_the_same(tmp_path):
    frame = stream(20_000)
    times = np.datetime_as_string(frame["time"])
    rows = (f"{t},{a},{b}\n" for t, a, b in zip(times, frame["y_true"], frame["y_pred"], strict=True))
    path = tmp_path / "events.csv"
    path.write_text("time,y_true,y_pred\n" + "".join(rows))
    assert diagnosed(path, points=[20]).to_dict() == diagnosed(frame, points=[20]).to_dict()
