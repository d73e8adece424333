"""The share of predicted positives, watched before labels come; never a drift of the model."""

import json
from itertools import pairwise

import numpy as np
import pytest

import fourrates as fr
from fourrates.findings import PredictionShift
from fourrates.io import InputError

SIZE, CHANGE = 30_000, 20_000
START = np.datetime64("2026-03-01T00:00:00", "us")


@pytest.fixture(scope="module")
def story():
    """Predictions a minute apart, three times as many of them positive from 20,000 on; labels come after 12 days."""
    random = np.random.default_rng(1)
    positives = np.where(np.arange(SIZE) < CHANGE, 0.03, 0.09)
    truth = (random.random(SIZE) < positives).astype(int)
    pred = np.where(random.random(SIZE) < np.where(truth, 0.8, 0.99), truth, 1 - truth)
    times = START + np.arange(SIZE) * np.timedelta64(60, "s")
    country = np.where(np.arange(SIZE) % 3 == 0, "FR", "DE")
    return {"id": np.arange(SIZE), "prediction": pred, "time": times, "country": country}, truth


def parts(columns, *edges):
    return [{name: column[a:b] for name, column in columns.items()} for a, b in pairwise(edges)]


def labels_of(story, until):
    """The labels that came until a prediction was made, and when."""
    predictions, truth = story
    came = predictions["time"] + np.timedelta64(12, "D")
    there = came <= predictions["time"][until - 1]
    return {"id": predictions["id"][there], "label": truth[there], "label_time": came[there]}


def test_a_shift_is_found_from_predictions_alone_and_is_no_drift(story):
    predictions, truth = story
    watch = fr.Watch(fr.FourRates(arl=10_000))
    (shift,) = watch.predict(predictions, wait="12 days")
    assert isinstance(shift, PredictionShift)
    assert (shift.kind, shift.drift, shift.closes, shift.segment) == ("prediction_shift", None, False, None)
    assert CHANGE < shift.at < CHANGE + 1_000
    assert abs(shift.started - CHANGE) < 500
    assert shift.started_between[0] <= CHANGE <= shift.started_between[1]
    assert shift.started_time == predictions["time"][shift.started]
    levels = [predictions["prediction"][part].mean() for part in (slice(0, CHANGE), slice(CHANGE, SIZE))]
    for share, level in zip((shift.before, shift.after), levels, strict=True):
        assert share.lower <= level <= share.upper
    assert "times as many predicted positive" in str(shift)
    assert str(shift).endswith("labels take about 12 days")
    assert (watch.events, watch.now().status, watch.now().open) == (0, "stable", ())
    alone = fr.Watch(fr.FourRates(arl=10_000))
    batch = {"y_true": truth, "y_pred": predictions["prediction"]}
    assert watch.update(batch) == alone.update(batch)


def test_it_is_the_same_however_predictions_are_cut_and_across_a_saved_state(story):
    predictions, _ = story
    wanted = fr.Watch(fr.FourRates(arl=10_000), "country", overall=fr.FourRates(arl=10_000)).predict(predictions)
    assert {finding.segment for finding in wanted} == {None, "FR", "DE"}
    watch, found = fr.Watch(fr.FourRates(arl=10_000), "country", overall=fr.FourRates(arl=10_000)), []
    for part in parts(predictions, 0, 777, CHANGE + 20, SIZE):
        found += watch.predict(part)
        watch = fr.Watch.from_bytes(watch.to_bytes())
    assert [(str(one), one.segment, one.time) for one in found] == [(str(one), one.segment, one.time) for one in wanted]


def test_a_state_whose_predictions_have_another_budget_is_refused(story):
    watch = fr.Watch(fr.FourRates(arl=10_000))
    watch.predict(story[0])
    watch.set_budget(20_000)
    assert fr.Watch.from_bytes(watch.to_bytes()).to_bytes() == watch.to_bytes()
    watch._unlabelled.segments.set_budget(10_000)
    with pytest.raises(InputError, match="predictions are watched by"):
        fr.Watch.from_bytes(watch.to_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("positives", [0.01, 0.1, 0.4])
def test_its_budget_is_a_tenth_of_that_of_drifts(positives):
    """1,000 false shifts are asked for; above 1,130 is four deviations of a Poisson law."""
    random, found = np.random.default_rng(2), 0
    for _ in range(100):
        watch = fr.Watch(fr.FourRates(arl=200))
        found += len(watch.predict({"prediction": (random.random(20_000) < positives).astype(int)}))
    assert 300 < found < 1_130


def test_a_normal_by_hour_covers_predictions_too():
    random, found = np.random.default_rng(3), {}
    times = START + np.arange(100_000) * np.timedelta64(60, "s")
    night = times.astype("M8[h]").astype(int) % 24 < 6
    pred = (random.random(times.size) < np.where(night, 0.15, 0.03)).astype(int)
    for strata in (None, "day"):
        found[strata] = fr.Watch(fr.FourRates(arl=10_000, strata=strata)).predict({"prediction": pred, "time": times})
    assert len(found[None]) > len(found["day"])
    assert len(found["day"]) <= 1  # one asked for, .37 of the time none
    assert found[None]


@pytest.mark.parametrize("detector", [fr.LFR(), fr.FourRates(labels=["a", "b", "c"])])
def test_other_detectors_and_more_classes_watch_no_predictions(detector):
    watch = fr.Watch(detector)
    label = detector.labels.values[0]
    assert not watch.predict({"prediction": [label] * 3_000})


@pytest.mark.parametrize("order", ["prediction", "arrival"])
def test_files_with_late_labels_tell_it_before_the_labels_come(story, order):
    predictions, _ = story
    (early,) = parts(predictions, 0, CHANGE + 2_000)
    labels = labels_of(story, CHANGE + 2_000)
    found = fr.detect(early, labels_from=labels, arl=10_000, order=order)
    (shift,) = found
    assert found.events == labels["id"].size < CHANGE
    assert shift.time == predictions["time"][shift.at]
    assert shift.wait == "12 days"
    record = found.to_dict()["findings"][-1]
    assert record["kind"] == "prediction_shift"
    assert record["wait"] == "12 days"
    assert record["after"]["lower"] > record["before"]["upper"]
    assert not found.to_dict()["drifted"]
    assert found.now().status == "stable"


def test_without_labels_of_a_segment_the_report_still_has_its_shift(story, tmp_path):
    predictions, truth = story
    late = {"id": predictions["id"][:9_000:3], "label": truth[:9_000:3]}  # of FR only
    found = fr.detect(predictions, labels_from=late, by="country", arl=10_000)
    assert {shift.segment for shift in found if shift.kind == "prediction_shift"} == {"FR", "DE"}
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Prediction shifts" in page
    assert "times as many predicted positive" in page
    assert "prediction shift" in found._repr_html_()


def test_every_night_tells_a_shift_once_and_the_exit_status_stays(story, tmp_path, monkeypatch, capsys):
    pytest.importorskip("rich")
    from fourrates.cli import app

    predictions, _ = story
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predictions").mkdir()
    (tmp_path / "labels").mkdir()
    edges, told, known = [0, 18_000, CHANGE, CHANGE + 1_000, CHANGE + 2_000], [], 0
    for night, part in enumerate(parts(predictions, *edges)):
        labels = labels_of(story, edges[night + 1])
        for name, columns in ("predictions", part), ("labels", {k: v[known:] for k, v in labels.items()}):
            rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
            (tmp_path / name / f"{night}.csv").write_text("\n".join(rows) + "\n")
        known = labels["id"].size
        words = ["detect", "predictions", "--labels-from", "labels", "--id", "id", "--budget", "10000"]
        fails = ["--fail-on", "drift", "--fail-on", "open"]
        assert not app.run([*words, "--state", "state", "--json", *fails])
        told.append([one["kind"] for one in json.loads(capsys.readouterr().out)["findings"]])
    assert told == [[], [], ["prediction_shift"], []]
    assert not app.run(words)
    table = capsys.readouterr().out
    assert "predictions" in table
    assert "shift" in table


def test_the_service_tells_it_counts_a_retry_once_and_sends_no_alert(story, tmp_path):
    pytest.importorskip("starlette")
    from fourrates.serve import views
    from fourrates.serve.batch import KINDS
    from fourrates.serve.bodies import Body, Limits, Plan, make_batch
    from fourrates.serve.config import MonitorConfig
    from fourrates.serve.monitor import Monitor
    from fourrates.serve.settings import Settings

    predictions, truth = story
    config, key, settings = MonitorConfig(arl=10_000), bytes(16), Settings(data=tmp_path)
    monitor, found, wide = Monitor(config, key, settings), [], Limits(10**6, 10**9)

    def send(kind, **columns):
        body = Body(**{name: columns.get(name) for name in ("id", "pred", "truth", "time")}, y_pred=None)
        batch, rejected = make_batch(KINDS[kind], body, Plan(config), 1.8e9, limits=wide)
        assert not rejected
        found.extend(monitor.apply(batch).findings)

    times = predictions["time"].astype(np.int64) / 1e6
    spells = np.array_split(np.arange(SIZE), 10)
    for part, rows in enumerate(spells):
        for _ in range(2):  # a retry
            send("predictions", id=predictions["id"][rows], pred=predictions["prediction"][rows], time=times[rows])
        if part == 5:
            known = spells[0]
            send("labels", id=predictions["id"][known], truth=truth[known], time=times[known] + 12 * 86_400)
        monitor = Monitor.restore(monitor.snapshot(), key, settings)
    (shift,) = [one for one in found if one.kind == "prediction_shift"]
    assert CHANGE < shift.at == shift.row < CHANGE + 1_000
    assert shift.wait == "12 days"
    body = views.finding(monitor, "m", "uid", shift)
    assert body["text"].startswith("m: prediction shift at ")
    assert (body.get("drift"), body["closes"], body["changes"]) == (None, False, [])
    assert monitor.shift is None
    assert monitor.watch.now().status == "stable"
