"""Events in: bodies of every form, bad rows, ids and keys that count once, late labels."""

import gzip
import io
import json

import msgspec
import numpy as np
import pytest

import fourrates as fr

PAIRS = {"y_true": [0, 1, 1, 0], "y_pred": [0, 1, 0, 0]}


@pytest.fixture
def server(start):
    served = start()
    assert served.http.put("/api/monitors/m", json={}).status_code == 201
    return served


def post(server, kind="events", body=PAIRS, name="m", query="", **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = server.http.post(f"/api/monitors/{name}/{kind}{query}", content=content, headers=headers)
    return answer.status_code, answer.json()


def shown(server, name="m"):
    return server.http.get(f"/api/monitors/{name}").json()


def arrow(**columns):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_an_answer_counts_the_rows_and_the_monitor_shows_them(server):
    assert post(server) == (200, {"accepted": 4, "repeated": 0, "rejected": 0, "findings": []})
    assert shown(server)["confusion"] == [[2, 0], [1, 1]]
    assert shown(server)["events"] == 4


def test_columns_rows_arrow_and_gzip_are_the_same_events(server):
    rows = "\n".join(json.dumps({"y_true": t, "y_pred": p}) for t, p in zip(*PAIRS.values(), strict=True)).encode()
    assert post(server, body=PAIRS)[0] == 200
    assert post(server, body={"truth": PAIRS["y_true"], "pred": PAIRS["y_pred"]})[0] == 200
    assert post(server, body=rows, **{"content-type": "application/x-ndjson"})[0] == 200
    kind = {"content-type": "application/vnd.apache.arrow.stream"}
    assert post(server, body=arrow(**{k: np.array(v, np.int8) for k, v in PAIRS.items()}), **kind)[0] == 200
    assert post(server, body=gzip.compress(json.dumps(PAIRS).encode()), **{"content-encoding": "gzip"})[0] == 200
    assert shown(server)["confusion"] == [[10, 0], [5, 5]]


def test_labels_that_are_text_are_read_in_every_way_they_can_be_written(start):
    server = start()
    server.http.put("/api/monitors/m", json={"labels": ["no", "sí"], "positive": "sí"})
    assert post(server, body=b'{"y_true": ["no","s\\u00ed"], "y_pred": ["s\xc3\xad" , "no"]}')[0] == 200
    assert shown(server)["confusion"] == [[0, 1], [1, 0]]


def test_a_bad_row_refuses_the_batch_and_is_named(server):
    status, answer = post(server, body={"y_true": [0, 7, 1], "y_pred": [0, 1, "x"]})
    assert status == 422
    assert answer["error"]["code"] == "bad_label"
    assert answer["error"]["message"] == "row 1: 7 in column 'y_true' is not one of the labels 0, 1"
    assert answer["error"]["where"]["row"] == 1
    assert answer["error"]["where"]["bad_rows"] == 2
    assert shown(server)["events"] == 0


def test_bad_rows_are_set_aside_on_request_and_listed(server):
    body = {"y_true": [0, 7, 1], "y_pred": [0, 1, "x"], "id": ["a", "b", "c"]}
    assert post(server, body=body, query="?bad=keep")[1]["rejected"] == 2
    assert shown(server)["confusion"] == [[1, 0], [0, 0]]
    listed = server.http.get("/api/monitors/m/rejected").json()["rejected"]
    assert [(one["row"], one["column"]) for one in listed] == [(2, "y_pred"), (1, "y_true")]
    assert listed[1]["values"] == {"y_true": 7, "y_pred": 1, "id": "b"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_json"),
        (b"[1, 2]", "bad_json"),
        (b'{"y_true": [0', "bad_json"),
        (b'{"y_true": [0]}', "no_column"),
        (b'{"y_true": 0, "y_pred": 0}', "not_a_column"),
        (b'{"y_true": [0, 1], "y_pred": [0]}', "lengths_differ"),
        (b'{"y_true": [[0]], "y_pred": [0]}', "bad_label"),
        (b'{"y_true": [0], "truth": [0], "y_pred": [0]}', "two_columns"),
        (b'{"y_true": [0], "y_pred": [0], "id": [null]}', "bad_id"),
        (b'{"y_true": [0], "y_pred": [0], "id": [{}]}', "bad_id"),
        (b'{"y_true": [0], "y_pred": [0], "time": ["soon"]}', "bad_time"),
        (b'{"y_true": [0], "y_pred": [0], "time": [1e300]}', "bad_time"),
        (b"[" * 100_000, "bad_json"),
    ],
)
def test_what_cannot_be_events_is_refused_with_a_code(server, body, code):
    status, answer = post(server, body=body)
    assert status in (400, 422)
    assert answer["error"]["code"] == code
    assert shown(server)["events"] == 0


def test_packed_bodies_are_bounded(start):
    server = start(max_body=100_000)
    server.http.put("/api/monitors/m", json={})
    bomb = gzip.compress(b'{"y_true": [' + b"0," * 1_000_000)
    assert len(bomb) < 10_000
    assert post(server, body=bomb, **{"content-encoding": "gzip"})[1]["error"]["code"] == "too_large"


def test_an_idempotency_key_counts_once_and_answers_the_same(server):
    first = post(server, **{"idempotency-key": "k"})
    assert post(server, **{"idempotency-key": "k"}) == first
    assert shown(server)["events"] == 4
    other = post(server, body={"y_true": [1], "y_pred": [1]}, **{"idempotency-key": "k"})
    assert (other[0], other[1]["error"]["code"]) == (422, "key_reused")
    assert post(server, kind="labels", body={"y_true": [1], "id": [1]}, **{"idempotency-key": "k"})[0] == 422


def test_a_key_of_a_monitor_that_was_removed_is_free_again(server):
    post(server, **{"idempotency-key": "k"})
    assert server.http.delete("/api/monitors/m").status_code == 204
    server.http.put("/api/monitors/m", json={})
    assert post(server, **{"idempotency-key": "k"})[1]["accepted"] == 4
    assert shown(server)["events"] == 4


def test_ids_count_once_within_and_between_batches(server):
    body = {"y_true": [0, 1, 1], "y_pred": [0, 1, 0], "id": ["a", "b", "a"]}
    assert post(server, body=body)[1] == {"accepted": 2, "repeated": 1, "rejected": 0, "findings": []}
    assert post(server, body=body)[1]["repeated"] == 3
    assert shown(server)["confusion"] == [[1, 0], [0, 1]]


def test_late_labels_meet_their_predictions_with_the_segment_of_the_prediction(start):
    server = start()
    server.http.put("/api/monitors/m", json={"by": ["country"]})
    by = {"country": ["FR", "DE"]}
    assert post(server, "predictions", {"id": [1, 2], "score": [0.2, 0.9], "by": by})[1]["accepted"] == 2
    assert shown(server)["waiting"] == 2
    post(server, "labels", {"id": [2, 3], "y_true": [0, 1]})
    assert (shown(server)["waiting"], shown(server)["waiting_labels"]) == (1, 1)
    assert shown(server)["confusion"] == [[0, 1], [0, 0]]
    (segment,) = server.http.get("/api/monitors/m/segments").json()["segments"]
    assert (segment["segment"], segment["events"]) == ({"country": "DE"}, 1)


def test_too_many_segments_refuse_the_batch_and_change_nothing(start):
    server = start(max_segments=2)
    server.http.put("/api/monitors/m", json={"by": ["s"]})
    pair = {"y_true": [0, 1], "y_pred": [0, 1]}
    assert post(server, body={**pair, "by": {"s": ["a", "b"]}})[0] == 200
    status, answer = post(server, body={**pair, "by": {"s": ["a", "c"]}})
    assert (status, answer["error"]["code"]) == (422, "too_many_segments")
    assert shown(server)["events"] == 2
    assert post(server, body={**pair, "by": {"s": ["b", "a"]}})[0] == 200


def test_an_id_that_is_no_number_leaves_no_segments_behind(start):
    server = start()
    server.http.put("/api/monitors/m", json={"by": ["s"]})
    body = arrow(y_true=[0, 1], y_pred=[0, 1], s=["ghost", "other"], id=[1.5, float("inf")])
    status, answer = post(server, body=body, **{"content-type": "application/vnd.apache.arrow.stream"})
    assert (status, answer["error"]["code"]) == (422, "bad_id")
    assert shown(server)["segments"] == 0


def test_equal_values_are_one_segment_and_text_is_another(start):
    server = start()
    server.http.put("/api/monitors/m", json={"by": ["s", "t"]})
    body = {"y_true": [0] * 4, "y_pred": [0] * 4, "by": {"s": [1, 1.0, "1", 1], "t": ["x", "x", "x", "y"]}}
    assert post(server, body=body)[0] == 200
    found = server.http.get("/api/monitors/m/segments").json()["segments"]
    assert sorted(((one["segment"]["s"], one["segment"]["t"], one["events"]) for one in found), key=str) == [
        ("1", "x", 1),
        (1, "x", 2),
        (1, "y", 1),
    ]


def test_quick_and_slow_reading_agree():
    from fourrates.serve.bodies import Limits, Plan, make_batch, read_table
    from fourrates.serve.config import parse_config

    random, limits = np.random.default_rng(5), Limits(100, 1 << 20)
    plan = Plan(parse_config(b'{"labels": ["a", "b", "c"], "by": ["s"]}'))
    for _ in range(50):
        size = int(random.integers(0, 40))
        rows = {
            "y_true": random.choice(["a", "b", "c"], size).tolist(),
            "y_pred": random.choice(["a", "b", "c"], size).tolist(),
            "id": random.choice([["x", "yé", ""], [1, -2, 30], ["x", 2, 2.5]][int(random.integers(3))], size).tolist(),
            "by": {"s": random.choice(["u", "vü"], size).tolist()},
        }
        quick = json.dumps(rows, ensure_ascii=False, indent=1).encode()
        slow = json.dumps(rows).encode().replace(b'"a"', b'"\\u0061"').replace(b'"u"', b'"\\u0075"')
        made = [
            make_batch(0, read_table(body, "", ["s"], limits), plan, 1.0, limits=limits)[0] for body in (quick, slow)
        ]
        assert made[0].truths == made[1].truths
        assert made[0].preds == made[1].preds
        assert made[0].listed_ids() == made[1].listed_ids() == rows["id"]
        names = [[batch.segments[i] for i in np.frombuffer(batch.segment_codes, "<u4")] for batch in made]
        assert names[0] == names[1] == [msgspec.json.encode([value]).decode() for value in rows["by"]["s"]]


def test_findings_of_the_service_are_those_of_detectors_fed_with_the_same_events(start):
    server = start()
    arl = 5_000
    server.http.put("/api/monitors/m", json={"arl": arl, "by": ["country"]})
    random = np.random.default_rng(3)
    truths = (random.random(12_000) < 0.3).astype(int)
    country = random.choice(["DE", "FR"], 12_000)
    wrong = np.where((country == "FR") & (np.arange(12_000) > 8_000), 0.45, 0.1)
    preds = truths ^ (random.random(12_000) < wrong)
    for start_ in range(0, 12_000, 700):
        part = slice(start_, start_ + 700)
        body = {
            "y_true": truths[part].tolist(),
            "y_pred": preds[part].tolist(),
            "by": {"country": country[part].tolist()},
        }
        body["id"] = [*range(start_, min(start_ + 700, 12_000))]
        assert post(server, body=body)[0] == 200
    found = server.http.get("/api/monitors/m/drifts?limit=1000").json()["drifts"]
    have = sorted((one["at"], one["kind"], one["closes"], str(one["segment"])) for one in found)
    whole, bank = fr.FourRates(2 * arl), fr.Bank(fr.FourRates(2 * arl, mix="ignore"))
    whole.update_many(truths, preds)
    bank.update(country.tolist(), truths, preds)
    want = [(finding, "None") for finding in whole.findings]
    want += [(one.finding, str({"country": one.key})) for one in bank.findings]
    assert have == sorted((finding.at, finding.kind, finding.closes, where) for finding, where in want)
    assert {kind for _, kind, _, _ in have} >= {"drift", "confirmation"}
    # The examples of a drift in a segment are the events of that segment from its start on.
    one = next(one for one in found if one["segment"] == {"country": "FR"} and one["kind"] == "drift")
    examples = server.http.get(f"/api/monitors/m/drifts/{one['id']}/examples").json()
    own = np.flatnonzero(country == "FR")
    assert examples["ids"] == own[one["started"] : one["at"] + 1].tolist()
    assert np.sum(one["confusion_after"]) == one["at"] - one["started"] + 1
    assert np.add(one["confusion_before"], one["confusion_after"]).tolist() == one["confusion"]


def test_the_series_ends_with_how_things_stand_though_all_events_came_at_once(server):
    assert server.http.get("/api/monitors/m/series").json()["event"] == []
    for rate in (0.0, 1.0):  # all right, then all wrong, within the moment between two points
        truths = [0, 1] * 500
        preds = [truth if not rate else 1 - truth for truth in truths]
        body = {"y_true": truths, "y_pred": preds, "time": [1_700_000_000.0] * 1_000}
        assert server.http.post("/api/monitors/m/events", json=body).status_code == 200
    found = server.http.get("/api/monitors/m/series").json()
    assert found["event"][-1] == 2_000
    assert found["rates"]["tpr"]["value"][-1] == 0.0
    detail = server.http.get("/api/monitors/m").json()
    assert detail["events"] == 2_000
