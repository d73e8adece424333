"""The fields that the live page stands on: the worst rate, lines of a day, segments over time, how late labels are."""

import msgspec
import numpy as np
import pytest

from fourrates.serve.batch import EVENTS, LABELS, PREDICTIONS, Batch
from fourrates.serve.config import parse_config
from fourrates.serve.monitor import Monitor
from fourrates.serve.series import MOMENTS, SegmentSeries
from fourrates.serve.settings import Settings

REFERENCE = [[4_500, 500], [1_000, 4_000]]


def body(size, tpr, seed=0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, size)
    right = random.random(size) < np.where(truth == 1, tpr, 0.9)
    return {"y_true": truth.tolist(), "y_pred": np.where(right, truth, 1 - truth).tolist()}


def test_the_segment_that_carries_a_drift_is_the_worst_and_its_numbers_are_those_of_its_events(start):
    served = start()
    served.http.put("/api/monitors/m", json={"by": ["country"], "arl": 100_000, "reference": REFERENCE})
    for country in ("FR", "DE", "IT"):
        served.http.post("/api/monitors/m/events", json=body(3_000, 0.8) | {"by": {"country": [country] * 3_000}})
    for place, (country, tpr) in enumerate([("FR", 0.2), ("DE", 0.8), ("IT", 0.8)]):
        sent = body(900, tpr, 20 + place) | {"by": {"country": [country] * 900}}
        served.http.post("/api/monitors/m/events", json=sent)
    (one,) = served.http.get("/api/monitors").json()["monitors"]
    assert (one["worst"]["segment"], one["worst"]["rate"]) == ({"country": "FR"}, "tpr")
    assert one["worst"]["now"]["value"] == pytest.approx(0.2, abs=0.08)  # of about 430 positives: 4 standard errors
    assert one["worst"]["normal"]["value"] == pytest.approx(0.8, abs=0.04)  # of 1,500: 4 standard errors
    assert one["spark"]["value"][-1] < 0.4
    segments = served.http.get("/api/monitors/m/segments").json()["segments"]
    assert segments[0]["segment"] == {"country": "FR"}
    assert [row["pinned"] for row in segments] == [True, False, False]
    (row,) = served.http.get("/api/monitors/m/segments", params={"segment": '["FR"]'}).json()["segments"]
    assert row == segments[0]
    drawn = served.http.get("/api/monitors/m/segments/series", params={"segment": '["FR"]'}).json()
    assert drawn["segment"] == {"country": "FR"}
    assert drawn["rates"]["tpr"]["value"][-1] == pytest.approx(0.2, abs=0.1)
    for query in ('["GB"]', "[", '"FR"'):
        assert served.http.get("/api/monitors/m/segments/series", params={"segment": query}).status_code in (404, 422)


def test_the_last_hour_is_counted_and_not_a_burst_times_sixty(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    for seed in range(3):
        served.http.post("/api/monitors/m/events", json=body(1_000, 0.8, seed))
    assert served.http.get("/api/monitors/m").json()["events_last_hour"] == 3_000


def test_an_open_drift_has_its_cost_by_the_prices_of_now(start):
    served = start()
    served.http.put("/api/monitors/m", json={"reference": REFERENCE, "cost": {"miss": 10}})
    for seed, tpr in enumerate((0.8, 0.3, 0.3)):
        served.http.post("/api/monitors/m/events", json=body(1_000, tpr, seed))
    (opened,) = served.http.get("/api/monitors/m").json()["open"]
    state = opened["now"]["tpr"]
    lost = (state["normal"]["value"] - state["now"]["value"]) * state["now"]["n"]
    assert opened["cost"]["value"] == pytest.approx(10 * lost, rel=0.1)  # of each class as many as in the mix
    assert opened["cost"]["text"].startswith("costs about ")
    assert served.http.patch("/api/monitors/m", json={"cost": {"miss": 20}}).status_code == 200
    (again,) = served.http.get("/api/monitors/m").json()["open"]
    assert again["cost"]["value"] == pytest.approx(2 * opened["cost"]["value"])
    assert served.http.patch("/api/monitors/m", json={"cost": {"nothing": 20}}).status_code == 422


def test_predictions_alone_do_not_move_the_last_point_in_time():
    monitor = Monitor(parse_config({}), bytes(16), Settings(data="."))
    sent = body(100, 0.8)
    monitor.apply(Batch(EVENTS, 1e9, 100, bytes(sent["y_true"]), bytes(sent["y_pred"])))
    ids = msgspec.json.encode([*range(50)])
    monitor.apply(Batch(PREDICTIONS, 1e9 + 3_600, 50, preds=bytes(50), ids=ids))
    assert monitor.drawn(600)["time"] == [1e9]


def test_a_series_begins_where_it_is_asked_to():
    monitor = Monitor(parse_config({}), bytes(16), Settings(data="."))
    for minute in range(120):
        sent = body(100, 0.8, minute)
        monitor.apply(Batch(EVENTS, 1e9 + 60 * minute, 100, bytes(sent["y_true"]), bytes(sent["y_pred"])))
    last = monitor.drawn(600, 60 * 19)
    every = monitor.drawn(600)
    assert last["time"][0] == 1e9 + 60 * 100
    assert last["rates"]["tpr"]["value"] == every["rates"]["tpr"]["value"][-20:], "the same rates, not begun anew"
    assert monitor.series.events_before(1e9 + 60 * 59.5) == 6_000


def test_the_delay_of_labels_is_the_median_of_those_followed():
    monitor = Monitor(parse_config({}), bytes(16), Settings(data="."))
    assert monitor.label_delay is None
    codes = bytes(4_000)
    ids = msgspec.json.encode([*range(4_000)])
    monitor.apply(Batch(PREDICTIONS, 1e9, 4_000, preds=codes, ids=ids))
    times = (1e9 + np.linspace(10, 110, 4_000)).astype("<f8").tobytes()
    monitor.apply(Batch(LABELS, 1e9 + 200, 4_000, codes, ids=ids, times=times))
    assert 70 < monitor.label_delay < 110, "of the latest ones: all are 10 to 110"


def test_segments_over_time_are_the_same_after_a_restart():
    config = parse_config({"by": ["shop"], "arl": 100_000})
    monitor = Monitor(config, bytes(16), Settings(data="."))
    for minute in range(40):
        sent = body(300, 0.8, minute)
        names = ['["a"]', '["b"]', '["c"]'][: 1 + minute // 10]
        shops = (np.arange(300) % len(names)).astype("<u4").tobytes()
        batch = Batch(EVENTS, 1e9 + 60 * minute, 300, bytes(sent["y_true"]), bytes(sent["y_pred"]))
        batch.segments, batch.segment_codes = names, shops
        monitor.apply(batch)
    again = Monitor.restore(monitor.snapshot(), bytes(16), Settings(data="."))
    for name in monitor.segments:
        assert again.drawn_segment(name) == monitor.drawn_segment(name)
    assert len(monitor.drawn_segment('["c"]')["time"]) == 21, "from its first event on, and now"
    assert monitor.segment_series.counts[:, 0].sum() == 40 * 300


def test_moments_of_segments_stay_few_close_of_late_and_enough_of_long_ago():
    series = SegmentSeries(2)
    for second in range(5_000):
        series.count(np.array([0]), np.array([1]), np.array([1]))
        series.note(float(second))
    times = np.array([time for time, _ in series.moments])
    assert len(times) <= MOMENTS[1]
    assert times[[0, -3, -2, -1]].tolist() == [0.0, 4_997.0, 4_998.0, 4_999.0]
    assert np.count_nonzero(times < 2_500) > MOMENTS[1] / 5
    assert np.diff(times).max() < 100
