"""Versions of the model in the service: a pair belongs to the version that predicted it, however late its label."""

import datetime

import numpy as np
import pytest

pytest.importorskip("starlette")

START = datetime.datetime.now(datetime.UTC).timestamp() - 90 * 86_400
SIZE, DEPLOYED = 12_000, 6_000


def log(seed=3, tpr=0.8):
    """Predictions half a minute apart; the tpr of v1 falls at event 4,000."""
    random = np.random.default_rng(seed)
    truth = (random.random(SIZE) < 0.3).astype(int)
    first = np.arange(SIZE) < DEPLOYED
    rate = np.where(truth == 1, np.where(first & (np.arange(SIZE) > 4_000), 0.4, tpr), 0.95)
    pred = np.where(random.random(SIZE) < rate, truth, 1 - truth)
    return truth.tolist(), pred.tolist(), ["v1" if one else "v2" for one in first.tolist()]


@pytest.mark.parametrize("by", [[], ["country"]])
def test_late_labels_of_the_old_version_are_its_own_and_the_new_one_begins_its_own_watch(start, by):
    served = start()
    http = served.http
    assert http.put("/api/monitors/m", json={"arl": 200_000, "by": by}).status_code in (200, 201)
    truth, pred, version = log()
    times = [START + 30 * i for i in range(SIZE)]
    ids = [*range(SIZE)]

    def send(kind, which, **columns):
        body = {"id": ids[which], "time": times[which], **columns}
        if by and kind == "predictions":
            body["by"] = {"country": ["de"] * len(body["id"])}
        assert http.post(f"/api/monitors/m/{kind}", json=body).status_code in (200, 202)

    send("predictions", slice(0, DEPLOYED), y_pred=pred[:DEPLOYED], version=version[:DEPLOYED])
    send("labels", slice(0, 3_000), y_true=truth[:3_000])
    send("predictions", slice(DEPLOYED, SIZE), y_pred=pred[DEPLOYED:], version=version[DEPLOYED:])
    summary = http.get("/api/monitors/m").json()
    assert [(one["version"], one["event"], one["serves"]) for one in summary["deployments"]] == [
        ("v1", 0, False),
        ("v2", DEPLOYED, True),
    ]
    assert summary["deployments"][1]["time"] is not None
    send("labels", slice(3_000, DEPLOYED), y_true=truth[3_000:DEPLOYED])
    findings = http.get("/api/monitors/m/drifts?limit=100").json()["drifts"]
    assert {(one["kind"], one.get("version")) for one in findings} >= {("drift", "v1"), ("acceptance", "v1")}
    assert "version v1" in findings[0]["text"]
    assert http.get("/api/monitors/m").json()["status"] == "stable"
    send("labels", slice(DEPLOYED, SIZE), y_true=truth[DEPLOYED:])
    latest = http.get("/api/monitors/m/drifts?limit=100").json()["drifts"]
    assert {one["version"] for one in latest if one["kind"] != "prediction_shift"} == {"v1"}
    drift = next(one for one in findings if one["kind"] == "drift" and not one["segment"])
    examples = http.get(f"/api/monitors/m/drifts/{drift['id']}/examples").json()
    assert examples["complete"]
    assert max(examples["ids"]) < DEPLOYED
    before = http.get("/api/monitors/m").json()
    served.close()
    after = start().http.get("/api/monitors/m").json()
    assert {name: after[name] for name in ("deployments", "rates", "status")} == {
        name: before[name] for name in ("deployments", "rates", "status")
    }


def test_too_many_versions_at_once_are_refused_and_nothing_changes(start):
    http = start().http
    http.put("/api/monitors/m", json={})
    body = {"y_true": [0, 1] * 15, "y_pred": [0, 1] * 15, "version": [*range(30)]}
    answer = http.post("/api/monitors/m/events", json=body)
    assert answer.status_code == 422
    assert "versions" in answer.json()["error"]["message"]
    assert http.get("/api/monitors/m").json()["events"] == 0


REFERENCE = [[950, 50], [200, 800]]


def test_segments_and_versions_have_references_of_their_own(start):
    http = start().http
    own = [{"by": {"country": "de"}, "counts": REFERENCE}]
    http.put("/api/monitors/m", json={"arl": 200_000, "by": ["country"], "references": own})
    random = np.random.default_rng(5)
    truth = (random.random(6_000) < 0.3).astype(int)

    def send(tpr, version):
        right = random.random(truth.size) < np.where(truth == 1, tpr, 0.95)
        body = {"y_true": truth.tolist(), "y_pred": np.where(right, truth, 1 - truth).tolist()}
        body |= {"by": {"country": ["de", "fr"] * 3_000}, "version": [version] * 6_000}
        assert http.post("/api/monitors/m/events", json=body).status_code == 200
        found = http.get("/api/monitors/m/drifts?limit=100").json()["drifts"]
        kinds = ("drift", "acceptance")
        return {(one["segment"] and one["segment"]["country"], one["version"]) for one in found if one["kind"] in kinds}

    assert send(0.6, "v1") == {("de", "v1")}  # the only segment that has a reference
    before = http.get("/api/monitors/m").json()
    added = [*own, {"version": "v2", "counts": REFERENCE}]
    answer = http.patch("/api/monitors/m", json={"references": added})
    assert answer.status_code == 200
    assert answer.json()["open"] == before["open"]  # nothing begins anew
    assert send(0.6, "v2") == {("de", "v1"), (None, "v2")}


@pytest.mark.parametrize(
    "wrong",
    [
        [{"counts": REFERENCE}],
        [{"counts": [[1, 2]], "version": "v2"}],
        [{"counts": REFERENCE, "by": {"town": "x"}}],
        [{"counts": REFERENCE, "by": {"country": "x"}, "more": 1}],
    ],
)
def test_references_that_do_not_fit_are_refused(start, wrong):
    answer = start().http.put("/api/monitors/m", json={"by": ["country"], "references": wrong})
    assert answer.status_code == 422
