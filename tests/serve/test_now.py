"""How things are now, as the service says it: in its JSON, its metrics and its alerts."""

import json

import numpy as np
import pytest

pytest.importorskip("starlette")
from prometheus_client.parser import text_string_to_metric_families

FALLS = 6_000


def stream(seed=3, size=10_000):
    """Two countries; from an event on half of the frauds in one of them are missed."""
    rng = np.random.default_rng(seed)
    y_true = (rng.random(size) < 0.4).astype(int)
    country = rng.choice(["DE", "FR"], size)
    recall = np.where((np.arange(size) >= FALLS) & (country == "FR"), 0.4, 0.9)
    right = rng.random(size) < np.where(y_true == 1, recall, 0.95)
    return y_true, np.where(right, y_true, 1 - y_true), country


def share_since(y_true, y_pred, chosen, after):
    """tpr over the chosen rows after one of them, counted in the raw data."""
    own = np.flatnonzero(chosen)[after + 1 :]
    positives = own[y_true[own] == 1]
    return len(positives), (y_pred[positives] == 1).mean()


@pytest.mark.parametrize("size", [500, 3_000])
def test_now_is_the_count_over_the_rows_since_the_alarm_at_every_door_of_the_service(start, receiver, size):
    served = start()
    alerts = {"channels": [receiver.url]}
    served.http.put("/api/monitors/fraud", json={"by": ["country"], "arl": 20_000, "alerts": alerts})
    y_true, y_pred, country = stream()
    for first in range(0, len(y_true), size):
        rows = slice(first, first + size)
        columns = {"y_true": y_true[rows].tolist(), "y_pred": y_pred[rows].tolist()}
        body = {**columns, "by": {"country": country[rows].tolist()}}
        assert served.http.post("/api/monitors/fraud/events", json=body).status_code == 200
    (summary,) = served.http.get("/api/monitors").json()["monitors"]
    detail = served.http.get("/api/monitors/fraud").json()
    assert (summary["status"], summary["open"]) == ("drifted", detail["open"])
    overall, segment = summary["open"]
    assert (overall["segment"], segment["segment"]) == (None, {"country": "FR"})
    for one, chosen in ((overall, country != ""), (segment, country == "FR")):
        drifts = served.http.get("/api/monitors/fraud/drifts").json()["drifts"]
        own = [f for f in drifts if f["segment"] == one["segment"] and f["kind"] == "drift"]
        latest = max(f["at"] for f in own)
        assert (one["id"], one["at"]) in [(f["id"], f["at"]) for f in own]
        n, tpr = share_since(y_true, y_pred, chosen, latest)
        assert one["now"]["tpr"]["now"]["n"] == n
        assert one["now"]["tpr"]["now"]["value"] == pytest.approx(tpr)
        assert one["confirmed"]
    assert detail["rates"]["tpr"]["now"] == overall["now"]["tpr"]["now"]
    metrics = served.http.get("/metrics").text
    rates = {
        sample.labels["rate"]: sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "fourrates_rate"
    }
    assert rates["tpr"] == pytest.approx(overall["now"]["tpr"]["now"]["value"])
    receiver.wait_for(1)
    assert ": tpr (positives caught) " in json.loads(receiver.requests[0].body)["text"]


def test_a_drift_that_a_rate_joined_is_dated_by_the_rate_it_leads_with(start):
    """In FR tnr falls a little at event 20,000 and tpr a lot at 32,000; overall so too, but less."""
    served, rng, size, at = start(), np.random.default_rng(5), 40_000, np.arange(40_000)
    y_true, country = rng.integers(0, 2, size), rng.choice(["DE", "FR"], size)
    fallen = np.where(y_true == 1, 0.6 * (at >= 32_000), 0.2 * (at >= 20_000)) * (country == "FR")
    y_pred = y_true ^ (rng.random(size) < 0.1 + fallen)
    times = 1_788_264_000 + 60 * at
    served.http.put("/api/monitors/fraud", json={"by": ["country"], "arl": 1_000_000})
    for first in range(0, size, 4_000):
        rows = slice(first, first + 4_000)
        columns = {"y_true": y_true[rows].tolist(), "y_pred": y_pred[rows].tolist(), "time": times[rows].tolist()}
        body = {**columns, "by": {"country": country[rows].tolist()}}
        assert served.http.post("/api/monitors/fraud/events", json=body).status_code == 200
    drifts = served.http.get("/api/monitors/fraud/drifts").json()["drifts"]
    opened = served.http.get("/api/monitors/fraud").json()["open"]
    assert [one["segment"] for one in opened] == [None, {"country": "FR"}]
    for one in opened:
        own = [found for found in drifts[::-1] if found["kind"] == "drift" and found["segment"] == one["segment"]]
        assert [change["rate"] for change in own[0]["changes"]] == ["tnr"]
        tpr = next(found for found in own if found["changes"][0]["rate"] == "tpr")
        assert (one["at"], one["started"]) == (tpr["at"], tpr["started"])
        assert np.datetime64(one["started_time"][:-1]) == np.datetime64(tpr["started_time"][:-1])
        late = np.datetime64(one["started_time"][:-1]) - np.datetime64(int(times[32_000]), "s")
        assert abs(late) < np.timedelta64(8, "h")
        assert one["directions"] == {"tnr": "down", "tpr": "down"}


def test_when_a_drift_started_does_not_depend_on_how_the_events_came(start):
    y_true, y_pred, country = stream()
    times = 1_788_264_000 + 60 * np.arange(len(y_true))
    told, served = [], start()
    for name, size in (("whole", 10_000), ("parts", 700)):
        served.http.put(f"/api/monitors/{name}", json={"by": ["country"], "arl": 20_000})
        for first in range(0, len(y_true), size):
            rows = slice(first, first + size)
            columns = {"y_true": y_true[rows].tolist(), "y_pred": y_pred[rows].tolist(), "time": times[rows].tolist()}
            body = {**columns, "by": {"country": country[rows].tolist()}}
            assert served.http.post(f"/api/monitors/{name}/events", json=body).status_code == 200
        drifts = served.http.get(f"/api/monitors/{name}/drifts").json()["drifts"]
        for finding in drifts:
            del finding["id"], finding["monitor"], finding["text"]
        told.append(drifts)
    assert told[0] == told[1]
    drift = next(finding for finding in told[0] if finding["kind"] == "drift" and finding["segment"] is None)
    assert drift["started_time"] is not None
    assert abs(np.datetime64(drift["started_time"][:-1]) - np.datetime64(int(times[FALLS]), "s")) < np.timedelta64(
        8, "h"
    )


def test_an_open_drift_has_the_id_of_its_finding_also_after_new_settings(start):
    served = start()
    served.http.put("/api/monitors/m", json={"by": ["shop"], "arl": 20_000})
    random = np.random.default_rng(3)
    for step, tpr in enumerate((0.9, 0.9, 0.3)):
        if step == 1:
            assert served.http.patch("/api/monitors/m", json={"arl": 10_000}).status_code == 200
        truth = random.integers(0, 2, 3_000)
        right = random.random(3_000) < np.where(truth == 1, tpr, 0.9)
        body = {"y_true": truth.tolist(), "y_pred": np.where(right, truth, 1 - truth).tolist()}
        served.http.post("/api/monitors/m/events", json=body | {"by": {"shop": ["a", "b", "b"] * 1_000}})
    opened = served.http.get("/api/monitors/m").json()["open"]
    assert {drift["segment"] and drift["segment"]["shop"] for drift in opened} == {None, "a", "b"}
    for drift in opened:
        finding = served.http.get(f"/api/monitors/m/drifts/{drift['id']}").json()
        assert (finding["at"], finding["segment"]) == (drift["at"], drift["segment"])
