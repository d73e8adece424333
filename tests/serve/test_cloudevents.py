"""What model servers log reaches a monitor: a recorded stream of KServe up to its alert, and every form one by one."""

import base64
import gzip
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette")
from receiver import Receiver

from fourrates.serve import cloudevents
from fourrates.serve.tokens import Tokens

RECORDED = Path(__file__).parent / "recorded/kserve.jsonl.gz"
SINK, OLD = "/api/monitors/fraud/cloudevents", "36500 days"


def recorded():
    with gzip.open(RECORDED, "rt") as file:
        return [json.loads(line) for line in file]


def replay(served):
    for line in recorded():
        if "labels" in line:
            answer = served.http.post("/api/monitors/fraud/labels", json=line["labels"])
        else:
            answer = served.http.post(SINK, headers=line["headers"], content=line["body"])
            assert answer.content == b"", "a broker takes any other answer for a damaged event"
        assert answer.status_code == 200, answer.text


def test_from_kserve_to_an_alert(start):
    receiver, served = Receiver(), start(alert_interval=0.2)
    config = {"by": ["country"], "reference": [[1_080, 60], [25, 475]], "arl": 10_000, "max_wait": OLD}
    served.http.put("/api/monitors/fraud", json=config | {"alerts": {"channels": [receiver.url]}})
    replay(served)
    receiver.wait_for(1)
    receiver.close()
    alert = json.loads(receiver.requests[0].body)
    assert alert["kind"] == "drift"
    assert "tpr" in alert["text"]
    now = served.http.get("/api/monitors/fraud").json()
    assert now["events"] == 1_600
    assert now["worst"]["segment"] == {"country": "FR"}
    assert (now["worst"]["rate"], now["waiting"], now["waiting_labels"]) == ("tpr", 0, 0)
    assert served.http.get("/api/monitors/fraud/rejected").json()["rejected"] == []
    (drift,) = [one for one in now["open"] if one["segment"] is None]
    assert 750 <= drift["started"] <= 900  # the amounts of France arrive as 0 from row 800 on
    replay(served)  # a broker may deliver twice
    assert served.http.get("/api/monitors/fraud").json()["events"] == 1_600


# One event ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sink(start):
    """Make a monitor with these settings, and give what sends it an event, a label, and what has come of them."""
    served = start()

    def make(query="", **config):
        served.http.put("/api/monitors/fraud", json={"max_wait": OLD, **config})

        def send(kind, payload, id="r", system="org.kubeflow.serving", status=200, raw=str, **more):
            headers = {"ce-id": id, "ce-type": f"{system}.{kind}", "content-type": "application/json"}
            headers |= {f"ce-{name}": value for name, value in more.items()}
            answer = served.http.post(SINK + query, headers=headers, content=raw(json.dumps(payload)))
            assert answer.status_code == status, answer.text
            return answer.json()["error"] if status != 200 else None

        def label(**labels):
            """Truths by id; the confusion counts then."""
            body = {"id": [*labels], "y_true": [*labels.values()]}
            served.http.post("/api/monitors/fraud/labels", json=body).raise_for_status()
            return served.http.get("/api/monitors/fraud").json()["confusion"]

        return SimpleNamespace(send=send, label=label, http=served.http)

    return make


REQUEST, RESPONSE = "inference.request", "inference.response"
V2 = {"id": "own", "outputs": [{"name": "fraud", "shape": [2], "datatype": "INT64", "data": [1, 0]}]}


def outputs(**tensor):
    return {"outputs": [{"name": "other", "shape": [2], "datatype": "FP32", "data": [7, 7]}, V2["outputs"][0] | tensor]}


@pytest.mark.parametrize(
    ("query", "payload"),
    [
        ("", {"predictions": [1, 0]}),
        ("", {"predictions": [[1], [0]]}),
        ("", {"predictions": [[0.2, 0.8], [0.9, 0.1]]}),
        ("?score=predictions", {"predictions": [0.8, 0.1]}),
        ("?pred=label", {"predictions": [{"score": 0.3, "label": 1}, {"score": 0.2, "label": "0"}]}),
        ("?pred=label", {"outputs": {"score": [0.1, 0.2], "label": [1, 0]}}),
        ("?pred=fraud", outputs()),
        ("?pred=fraud", outputs(shape=[2, 1])),
        ("?pred=fraud", outputs(datatype="BYTES", data=["1", "0"])),
        ("?pred=fraud", outputs(datatype="FP64", shape=[2, 2], data=[0.2, 0.8, 0.9, 0.1])),
        ("?pred=fraud", outputs(datatype="FP64", shape=[2, 2], data=[[0.2, 0.8], [0.9, 0.1]])),
        ("", {"data": {"names": ["no", "yes"], "ndarray": [[0.2, 0.8], [0.9, 0.1]]}}),
        ("?score=yes", {"data": {"names": ["yes"], "tensor": {"shape": [2, 1], "values": [0.8, 0.1]}}}),
    ],
)
def test_a_response_of_any_form_is_predictions(sink, query, payload):
    to = sink(query)
    to.send(RESPONSE, payload)
    assert to.label(**{"r/0": 1, "r/1": 1}) == [[0, 0], [1, 1]]


def test_probabilities_are_in_the_order_of_the_labels_whichever_is_positive(sink):
    to = sink(labels=["bad", "good"], positive="bad")
    to.send(RESPONSE, {"predictions": [[0.9, 0.1]]})
    assert to.label(r="bad") == [[0, 0], [0, 1]]


def test_of_many_classes_the_likeliest_is_the_prediction(sink):
    to = sink(labels=["a", "b", "c"])
    to.send(RESPONSE, {"predictions": [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]})
    assert to.label(**{"r/0": "c", "r/1": "b"}) == [[0, 0, 0], [1, 0, 0], [0, 0, 1]]


def test_a_v2_response_has_an_id_that_its_caller_knows(sink):
    to = sink()
    to.send(RESPONSE, V2)
    assert to.label(**{"own/0": 1, "own/1": 0}) == [[1, 0], [0, 1]]


def test_the_version_of_a_v2_response_is_that_of_its_predictions(sink):
    to = sink()
    for version in ("v1", "v2"):
        to.send(RESPONSE, V2 | {"id": version, "model_version": version})
    to.label(**{"v1/0": 1, "v1/1": 0, "v2/0": 1})
    now = to.http.get("/api/monitors/fraud").json()
    assert [(one["version"], one["event"]) for one in now["deployments"]] == [("v1", 0), ("v2", 2)]


@pytest.mark.parametrize("order", [(REQUEST, RESPONSE), (RESPONSE, REQUEST), (RESPONSE, REQUEST, RESPONSE, REQUEST)])
def test_segments_and_ids_of_ones_own_come_from_the_request_in_either_order(sink, order):
    to = sink("?id=order", by=["country"])
    asked = {"instances": [{"country": "FR", "order": 17, "x": [1, 2]}, {"country": "DE", "order": 18}]}
    for kind in order:
        to.send(kind, asked if kind == REQUEST else {"predictions": [1, 1]})
    to.send(REQUEST, asked, id="another")
    assert to.label(**{"x": 1}) == [[0, 0], [0, 0]]
    body = {"id": [17, 18], "y_true": [1, 0]}
    assert to.http.post("/api/monitors/fraud/labels", json=body).json()["accepted"] == 2
    assert to.http.get("/api/monitors/fraud").json()["confusion"] == [[0, 1], [0, 1]]
    named = [one["segment"]["country"] for one in to.http.get("/api/monitors/fraud/segments").json()["segments"]]
    assert sorted(named) == ["DE", "FR"]


def test_seldon_joins_by_its_request_id_and_its_feedback_is_the_label(sink):
    to = sink(by=["country"])
    seldon = {"system": "io.seldon.serving", "requestid": "q", "modelid": "m", "protocol": "seldon"}
    to.send(REQUEST, {"data": {"names": ["x", "country"], "ndarray": [[1, "FR"]]}}, id="e1", **seldon)
    to.send(RESPONSE, {"data": {"names": ["t:0"], "ndarray": [[1]]}, "meta": {}}, id="e2", **seldon)
    to.send("feedback", {"reward": 0, "truth": {"data": {"ndarray": [[0]]}}}, id="e3", **seldon)
    assert to.http.get("/api/monitors/fraud").json()["confusion"] == [[0, 1], [0, 0]]


@pytest.mark.parametrize("packed", [False, True])
def test_an_event_may_be_one_object(sink, packed):
    to = sink()
    data = {"predictions": [1]}
    payload = {"data_base64": base64.b64encode(json.dumps(data).encode()).decode()} if packed else {"data": data}
    event = {"specversion": "1.0", "id": "r", "type": "org.kubeflow.serving.inference.response", **payload}
    sent = to.http.post(SINK, content=json.dumps(event), headers={"content-type": "application/cloudevents+json"})
    assert sent.status_code == 200
    assert to.label(r=0) == [[0, 1], [0, 0]]


def test_a_bad_row_is_kept_with_its_reason_since_nobody_reads_the_answer(sink):
    to = sink()
    to.send(RESPONSE, {"predictions": [1, 7]})
    (row,) = to.http.get("/api/monitors/fraud/rejected").json()["rejected"]
    assert "7 in column 'y_pred'" in row["problem"]
    assert to.label(**{"r/0": 1}) == [[0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("kind", "payload", "status", "said"),
    [
        ("inference.other", {}, 422, "is not the type of a request, a response or feedback"),
        (RESPONSE, {"answer": 1}, 422, "one of predictions, instances, outputs, inputs or an object data"),
        (RESPONSE, {"predictions": 1}, 422, "predictions is not a list"),
        (RESPONSE, [1], 400, "no JSON object"),
        (RESPONSE, {"outputs": {}}, 422, "there is no output"),
        (RESPONSE, outputs(shape=[3]), 422, "has 2 values, but its shape [3] has 3"),
        (RESPONSE, outputs(shape=["2"]), 422, "has the shape ['2']"),
        (RESPONSE, outputs(shape=[2, *[1 << 30] * 9]), 422, "has the shape [2, 1073741824"),
        (RESPONSE, {"outputs": [{"name": "a", "datatype": "FP32", "shape": [1], "parameters": {}}]}, 422, "is binary"),
        (RESPONSE, {"data": {"tensor": {"shape": [1]}}}, 422, "data.tensor.values is not a list"),
        (RESPONSE, {"predictions": [[]] * 1_000_100}, 413, "a payload of more than"),
        (
            RESPONSE,
            {"predictions": [{f"{row}": 1} for row in range(9_000)]},
            422,
            "9,000 rows with 9,000 different names",
        ),
        ("feedback", {"reward": 1}, 422, "a payload has one of"),
    ],
)
def test_what_cannot_be_used_is_an_error_that_says_why(sink, kind, payload, status, said):
    to = sink()
    assert said in to.send(kind, payload, status=status)["message"]
    assert to.http.get("/api/monitors/fraud").json()["waiting"] == 0


def test_an_event_without_an_id_or_a_type_is_an_error(sink):
    to = sink()
    for headers in ({}, {"ce-id": "r"}, {"ce-type": "x.inference.response"}):
        answer = to.http.post(SINK, headers=headers, content=b"{}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_event")
    assert "an event has up to" in to.send(RESPONSE, {}, id="x" * 300, status=422)["message"]


def test_numbers_of_large_exponents_are_read_in_time(sink):
    to = sink()
    began = time.perf_counter()
    to.send(RESPONSE, {"predictions": [1], "other": ["@"] * 400_000}, raw=lambda text: text.replace('"@"', "1e308"))
    assert time.perf_counter() - began < 3  # 4 seconds at 10 us each


def test_a_request_that_lacks_a_segment_or_an_id_is_an_error(sink):
    to = sink("?id=order", by=["country"])
    to.send(RESPONSE, {"predictions": [1]})
    assert "no order" in to.send(REQUEST, {"instances": [{"country": "FR"}]}, status=422)["message"]
    assert "by.country" in to.send(REQUEST, {"instances": [{"order": 1}]}, status=422)["message"]


def test_halves_whose_other_half_never_comes_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(cloudevents, "MOST_BYTES", 100_000)
    halves = cloudevents.Halves()
    for number in range(1_000):
        halves.keep(("m", "request", f"{number}"), cloudevents.Half({"country": ["FR"] * 10}))
    kept = [number for number in range(1_000) if halves.find(("m", "request", f"{number}"))]
    assert kept == [*range(1_000 - len(kept), 1_000)]
    assert 50 < len(kept) < 150


def test_a_token_may_stand_in_the_address_which_is_all_that_kserve_can_be_given(start):
    served = start(token_required=True)
    key, _ = Tokens(served.data).create("kserve", ["ingest", "read"])
    headers = {"ce-id": "r", "ce-type": "a.inference.response"}
    url = f"http://{{}}127.0.0.1:{served.port}{SINK}"
    for user, status in ((f"any:{key}@", 404), ("any:wrong@", 401), ("", 401)):
        assert served.http.post(url.format(user), headers=headers, content=b"{}").status_code == status
    assert served.http.get(f"http://any:{key}@127.0.0.1:{served.port}/api/monitors").status_code == 401
    assert served.http.get("/api/monitors", headers={"authorization": f"Bearer {key}"}).status_code == 200
    for basic in ("Basic", "Basic !", "Basic " + base64.b64encode(key.encode()).decode()):
        assert served.http.post(SINK, headers=headers | {"authorization": basic}).status_code == 401
