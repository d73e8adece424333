"""When things go wrong: a disk that is full, a clock that jumps, settings that change, a monitor that is removed."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import msgspec
import numpy as np
import pytest

pytest.importorskip("starlette")
from fourrates.serve.batch import EVENTS, Batch
from fourrates.serve.clock import Clock
from fourrates.serve.config import check_name, parse_config
from fourrates.serve.errors import ApiError
from fourrates.serve.monitor import Monitor
from fourrates.serve.registry import PART, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.store import open_store
from fourrates.serve.store.base import Store, StoreError

REFERENCE = [[900, 100], [100, 900]]


def events(size, tpr, seed=0, **columns):
    """Balanced classes at tnr 0.9 and this tpr."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, size)
    right = random.random(size) < np.where(truth == 1, tpr, 0.9)
    return {"y_true": truth.tolist(), "y_pred": np.where(right, truth, 1 - truth).tolist(), **columns}


@contextmanager
def denied(store):
    """A database that refuses every statement, reads as well."""
    store._connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
    try:
        yield
    finally:
        store._connection.set_authorizer(None)


@contextmanager
def read_only(store):
    """A database that can be read and not written, as on a disk that is full or mounted read-only."""
    store._query("PRAGMA query_only = ON")
    try:
        yield
    finally:
        store._query("PRAGMA query_only = OFF")


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


# The disk -------------------------------------------------------------------------------------------------------


def test_a_database_that_cannot_be_read_is_unavailable_and_no_defect(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    body = {"y_true": [1], "y_pred": [1]}
    with denied(served.app.store):
        answers = [
            served.http.post("/api/monitors/m/events", json=body, headers={"Idempotency-Key": "a"}),
            served.http.get("/api/monitors/m/drifts"),
            served.http.get("/readyz"),
        ]
    assert [answer.status_code for answer in answers] == [503, 503, 503]
    assert answers[0].headers["Retry-After"] == "1"
    again = served.http.post("/api/monitors/m/events", json=body, headers={"Idempotency-Key": "a"})
    assert again.json()["accepted"] == 1
    assert served.http.get("/api/monitors/m").json()["events"] == 1


@pytest.mark.slow
def test_a_server_that_cannot_write_is_not_ready_and_refuses_batches_until_it_can(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    assert served.http.get("/readyz").text == "ready\n"
    body = {"y_true": [1, 0], "y_pred": [1, 0]}
    with read_only(served.app.store):
        until(lambda: served.http.get("/readyz").status_code == 503)
        refused = served.http.post("/api/monitors/m/events", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
        assert served.http.get("/api/monitors/m").json()["events"] == 0, "what is not on disk has not happened"
        assert served.http.get("/healthz").status_code == 200
    until(lambda: served.http.get("/readyz").status_code == 200)
    assert served.http.post("/api/monitors/m/events", json=body).json()["accepted"] == 2
    assert served.http.get("/api/monitors/m").json()["events"] == 2


@pytest.mark.slow
def test_a_server_with_room_for_a_probe_and_not_for_a_batch_is_not_ready(start, monkeypatch):
    served = start()
    served.http.put("/api/monitors/m", json={})
    commit = Store.commit
    monkeypatch.setattr(Store, "commit", lambda *_: (_ for _ in ()).throw(StoreError("no room")))
    assert served.http.post("/api/monitors/m/events", json=events(10, 0.9)).status_code == 503
    answer = served.http.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "no room\n")
    monkeypatch.setattr(Store, "commit", commit)
    assert served.http.post("/api/monitors/m/events", json=events(10, 0.9)).status_code == 200
    until(lambda: served.http.get("/readyz").status_code == 200, 5)


def test_what_people_do_while_the_disk_is_full_is_refused_as_unavailable(start, receiver):
    served = start()
    config = {"arl": 2_000, "reference": REFERENCE, "alerts": {"channels": [receiver.url]}}
    served.http.put("/api/monitors/m", json=config)
    (drift, *_) = served.http.post("/api/monitors/m/events", json=events(400, 0.2)).json()["findings"]
    service = served.app
    with read_only(service.store):
        calls = [
            ("POST", f"/drifts/{drift}/acknowledge", None),
            ("PUT", "/silence", {"until": "2099-01-01T00:00:00Z"}),
            ("PATCH", "", {"arl": 3_000}),
            ("DELETE", "", None),
        ]
        answers = [served.http.request(method, f"/api/monitors/m{path}", json=body) for method, path, body in calls]
        answers.append(served.http.put("/api/monitors/other", json={}))
    assert [answer.status_code for answer in answers] == [503] * 5
    assert [one["name"] for one in served.http.get("/api/monitors").json()["monitors"]] == ["m"]
    assert served.http.get("/api/monitors/m").json()["arl"] == 2_000


@pytest.mark.slow
def test_alerts_go_on_after_whatever_went_wrong(start, receiver, monkeypatch):
    served = start(alert_interval=0.0)
    config = {"arl": 2_000, "reference": REFERENCE, "alerts": {"channels": [receiver.url]}}
    served.http.put("/api/monitors/m", json=config)
    unalerted, calls = Store.unalerted, []

    def failing(self, limit=1_000):
        calls.append(limit)
        if len(calls) == 1:
            raise ZeroDivisionError
        return unalerted(self, limit)

    monkeypatch.setattr(Store, "unalerted", failing)
    served.http.post("/api/monitors/m/events", json=events(400, 0.2))
    receiver.wait_for(1, 15)
    assert len(calls) >= 2


@pytest.mark.slow
def test_the_writer_outlives_a_snapshot_that_cannot_be_made(start, monkeypatch):
    served = start(snapshot_bytes=1)
    served.http.put("/api/monitors/m", json={})
    tried = threading.Event()

    def failing(self):
        tried.set()
        raise MemoryError

    monkeypatch.setattr(Monitor, "snapshot", failing)
    served.http.post("/api/monitors/m/events", json=events(20_000, 0.9))
    assert tried.wait(10)
    for _ in range(3):
        time.sleep(0.3)
        assert served.http.post("/api/monitors/m/events", json=events(10, 0.9), timeout=5).status_code == 200
    assert served.http.get("/healthz").status_code == 200


def test_a_monitor_that_could_not_be_written_may_be_removed_and_made_again(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    body = {"y_true": [1], "y_pred": [1]}
    with read_only(served.app.store):
        assert served.http.post("/api/monitors/m/events", json=body).status_code == 503
    assert served.http.delete("/api/monitors/m").status_code == 204
    assert served.http.put("/api/monitors/m", json={}).status_code == 201
    assert served.http.post("/api/monitors/m/events", json=body).status_code == 200
    assert served.http.get("/api/monitors/m").json()["events"] == 1


def test_a_monitor_is_made_with_its_first_snapshot_or_not_at_all(tmp_path, monkeypatch):
    store = open_store(Settings(data=tmp_path))
    registry = Registry(Settings(data=tmp_path), store)
    insert = type(store)._insert

    def full(self, table, columns, rows):
        if table.startswith("snapshot"):
            raise StoreError("no room")
        insert(self, table, columns, rows)

    monkeypatch.setattr(type(store), "_insert", full)
    with pytest.raises(StoreError, match="no room"):
        registry.create("m", parse_config(b"{}"))
    assert registry.lives == {}
    assert store.monitors() == []
    monkeypatch.undo()
    live = registry.create("m", parse_config(b"{}"))
    assert store.snapshot(live.row.id)[1]
    store.close()


def test_a_monitor_that_is_removed_while_it_is_saved_leaves_nothing_behind(tmp_path, monkeypatch):
    store = open_store(Settings(data=tmp_path))
    registry = Registry(Settings(data=tmp_path), store)
    live = registry.create("m", parse_config(b"{}"))
    monkeypatch.setattr(Monitor, "snapshot", lambda self: bytes(2 * PART + 1))
    saving = registry.save(live)
    next(saving)
    registry.remove("m")
    for _ in saving:
        pass
    for table in ("snapshots", "snapshot_parts"):
        assert store._query(f"SELECT count(*) FROM {table}") == [(0,)], table
    store.close()


# A write that reached the store, though nobody knows ---------------------------------------------------------------


@contextmanager
def lost_answer(store, times=1):
    """The next transactions are committed, and the server does not get to know; those it makes by itself are."""
    query, by_itself = store._query, False

    def cut(sql, values=()):
        nonlocal times, by_itself
        found = query(sql, values)
        by_itself = not sql.startswith("BEGIN") and (by_itself or (*values, "")[0] in ("alerts", "probe"))
        if sql == "COMMIT" and times and not by_itself:
            times -= 1
            raise StoreError("the connection was lost")
        return found

    store._query = cut
    try:
        yield
    finally:
        store._query = query
    assert not times


def test_a_monitor_whose_commit_was_not_answered_is_there(start):
    served = start()
    with lost_answer(served.app.store):
        assert served.http.put("/api/monitors/m", json={}).status_code == 503
    assert served.http.put("/api/monitors/m", json={}).status_code == 200
    assert served.http.post("/api/monitors/m/events", json=events(10, 0.9)).status_code == 200


def test_a_monitor_whose_removal_was_not_answered_is_gone(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    with lost_answer(served.app.store):
        assert served.http.delete("/api/monitors/m").status_code == 503
    assert served.http.post("/api/monitors/m/events", json=events(10, 0.9)).status_code == 404
    assert served.app.store._query("SELECT count(*) FROM journal") == [(0,)]


def test_a_silence_that_was_not_answered_holds(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    with lost_answer(served.app.store):
        body = {"until": "2099-01-01T00:00:00Z"}
        assert served.http.put("/api/monitors/m/silence", json=body).status_code == 503
    assert served.http.get("/api/monitors/m").json()["silenced_until"].startswith("2099")


def test_a_snapshot_in_use_outlives_the_next_one(tmp_path, monkeypatch):
    settings = Settings(data=tmp_path)
    store = open_store(settings)
    registry = Registry(settings, store)
    live = registry.create("m", parse_config(b"{}"))
    monkeypatch.setattr("fourrates.serve.registry.PART", 100)
    parts = registry.save(live)
    for _ in range(-(-len(live.monitor.snapshot()) // 100)):
        next(parts)
    with lost_answer(store), pytest.raises(StoreError, match="lost"):
        next(parts)
    next(registry.save(live))  # at the same position; and then the server is killed
    store.close()
    again = open_store(settings)
    registry = Registry(settings, again)
    registry.refresh()
    assert registry.lives["m"].monitor.snapshot() == live.monitor.snapshot()
    for _ in registry.save(registry.lives["m"]):
        pass
    assert again._query("SELECT count(DISTINCT generation) FROM snapshot_parts") == [(1,)]
    again.close()


# Damage ---------------------------------------------------------------------------------------------------------

DAMAGE = {
    "journal cut": "UPDATE journal SET body = substr(body, 1, 20) WHERE monitor = 2",
    "journal row lost": "DELETE FROM journal WHERE position = (SELECT min(position) FROM journal WHERE monitor = 2)",
    "snapshot cut": "UPDATE snapshot_parts SET body = substr(body, 1, 100) WHERE monitor = 2",
    "snapshot changed": "UPDATE snapshot_parts SET body = zeroblob(length(body)) WHERE monitor = 2",
    "snapshot lost": "DELETE FROM snapshots WHERE monitor = 2",
    "finding": "INSERT INTO findings VALUES (99, 'f', 2, NULL, 'drift', x'00', 0, NULL)",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_monitor_is_named_and_the_others_run(start, kind):
    served = start()
    for name in ("good", "hurt"):
        served.http.put(f"/api/monitors/{name}", json={})
        for seed in range(2):
            served.http.post(f"/api/monitors/{name}/events", json=events(50, 0.9, seed))
    served.close()
    served.app.store.close()
    with sqlite3.connect(served.data / "fourrates.db") as connection:
        connection.execute(DAMAGE[kind])
    connection.close()
    again = start()
    assert again.http.get("/readyz").status_code == 200
    assert again.http.get("/api/monitors/good").json()["events"] == 100
    assert again.http.post("/api/monitors/good/events", json=events(50, 0.9)).status_code == 200
    listed = again.http.get("/api/monitors").json()
    assert [one["name"] for one in listed["monitors"]] == ["good"]
    assert [one["name"] for one in listed["damaged"]] == ["hurt"]
    calls = [("GET", "", None), ("PUT", "", {}), ("POST", "/events", events(1, 0.9)), ("PATCH", "", {"arl": 9_000})]
    for method, path, body in calls:
        answer = again.http.request(method, f"/api/monitors/hurt{path}", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "damaged"), method
        assert "hurt" in answer.json()["error"]["message"]
    assert again.http.delete("/api/monitors/hurt").status_code == 204
    assert again.http.put("/api/monitors/hurt", json={}).status_code == 201


@pytest.mark.slow
def test_a_server_whose_database_cannot_be_read_says_so(tmp_path):
    open_store(Settings(data=tmp_path / "data")).close()
    with sqlite3.connect(tmp_path / "data" / "fourrates.db") as connection:
        connection.execute("DROP TABLE monitors")
    connection.close()
    program = "import sys; from fourrates.cli import main; sys.argv[0] = 'fourrates'; main()"
    words = [sys.executable, "-c", program, "serve", "--port", "0", "--data", tmp_path / "data"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "fourrates: fourrates.db: no such table: monitors"


def test_a_rejected_batch_leaves_no_segments_behind(tmp_path):
    monitor = Monitor(parse_config(b'{"by": ["c"]}'), bytes(16), Settings(data=tmp_path))
    for ids in (b"[1, null]", b'[1, {"no": "id"}]'):
        ghosts = {"segments": ["ghost", "other"], "segment_codes": np.array([0, 1], "<u4").tobytes()}
        batch = Batch(EVENTS, 1e9, 2, b"\0\1", b"\0\1", ids, **ghosts)
        with pytest.raises(ValueError, match="cannot be an id"):
            monitor.apply(batch)
    assert len(monitor.segments) == 0


# Settings that change -------------------------------------------------------------------------------------------


def test_the_same_drift_after_new_settings_is_one_more_finding(start):
    served = start()
    served.http.put("/api/monitors/m", json={"arl": 2_000, "reference": REFERENCE})
    bad = events(400, 0.2)
    (first,) = served.http.post("/api/monitors/m/events", json=bad).json()["findings"][:1]
    assert served.http.patch("/api/monitors/m", json={"reference": [[90, 10], [10, 90]]}).status_code == 200
    assert served.http.get("/api/monitors/m").json()["status"] == "stable"
    answer = served.http.post("/api/monitors/m/events", json=bad)
    assert answer.status_code == 200, answer.text
    (second,) = answer.json()["findings"][:1]
    assert served.http.get("/api/monitors/m").json()["events"] == 800
    older, newer = (served.http.get(f"/api/monitors/m/drifts/{id}").json() for id in (first, second))
    assert first != second
    assert older["at"] < 400 <= newer["at"] < 800, "events of the monitor, whatever was reset"
    assert 400 <= newer["started"] <= newer["at"]
    assert newer["started_first"] >= 400
    assert f"drift at {newer['at']:,}" in newer["text"]
    assert np.sum(newer["confusion_after"]) == newer["at"] - newer["started"] + 1
    assert served.http.post(f"/api/monitors/m/drifts/{second}/acknowledge").status_code == 200


def test_events_are_counted_on_after_a_reset_and_a_restart(tmp_path):
    settings, key = Settings(data=tmp_path), bytes(16)
    old, new = (parse_config({"arl": 2_000, "reference": counts}) for counts in (REFERENCE, [[90, 10], [10, 90]]))
    monitor = Monitor(old, key, settings)
    body = events(400, 0.2)
    batch = Batch(EVENTS, 1e9, 400, bytes(body["y_true"]), bytes(body["y_pred"]))
    monitor.apply(batch)
    monitor.apply(Batch(3, 1e9, 0, config=msgspec.json.encode(new)))
    again = Monitor.restore(monitor.snapshot(), key, settings)
    findings = monitor.apply(batch).findings
    assert findings == again.apply(batch).findings
    assert [finding.row for finding in findings if finding.kind == "drift"] == [findings[0].at]
    assert findings[0].at >= 400


def test_two_people_who_change_a_monitor_at_once_both_get_what_they_want(start, monkeypatch):
    served = start()
    served.http.put("/api/monitors/m", json={"arl": 2_000})
    changes = [{"arl": 3_000}, {"threshold": 0.7}, {"mix": "ignore"}, {"alerts": {"silent_after": "1 day"}}]

    async def all_at_once():
        async with httpx.AsyncClient(base_url=served.url, timeout=30) as http:
            calls = [http.patch("/api/monitors/m", json=change) for change in changes]
            return await asyncio.gather(*calls)

    assert [answer.status_code for answer in asyncio.run(all_at_once())] == [200] * len(changes)
    config = served.http.get("/api/monitors/m").json()["config"]
    assert (config["arl"], config["threshold"], config["mix"]) == (3_000, 0.7, "ignore")
    assert config["alerts"]["silent_after"] == "1 day"


@pytest.mark.slow
def test_an_alert_is_resolved_when_new_settings_reset_what_it_is_about(start, receiver):
    served = start(alert_interval=0.0)
    config = {"arl": 2_000, "reference": REFERENCE, "alerts": {"channels": [receiver.url]}}
    served.http.put("/api/monitors/m", json=config)
    served.http.post("/api/monitors/m/events", json=events(400, 0.2))
    receiver.wait_for(1)
    served.http.patch("/api/monitors/m", json={"reference": [[900, 100], [800, 200]]})
    assert served.http.get("/api/monitors/m").json()["status"] == "stable"
    receiver.wait_for(2, 20)
    told = [msgspec.json.decode(request.body) for request in receiver.requests]
    assert [one["status"] for one in told] == ["firing", "resolved"]


# What is shown --------------------------------------------------------------------------------------------------


def test_the_series_reaches_the_alarm_at_the_event_that_gave_it(start):
    served = start()
    served.http.put("/api/monitors/m", json={"arl": 2_000, "reference": REFERENCE})
    served.http.post("/api/monitors/m/events", json=events(400, 0.2))
    *_, drift = served.http.get("/api/monitors/m/drifts").json()["drifts"]
    assert drift["kind"] == "drift"
    series = served.http.get("/api/monitors/m/series").json()
    assert series["event"] == sorted({*series["event"]})
    assert series["evidence"][series["event"].index(drift["at"] + 1)] == 1.0


def test_the_first_events_of_a_monitor_count_among_those_of_its_hour(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    served.http.post("/api/monitors/m/events", json=events(30, 0.9))
    assert served.http.get("/api/monitors/m").json()["events_last_hour"] == 30


# The clock ------------------------------------------------------------------------------------------------------


def test_one_row_from_tomorrow_makes_no_prediction_expire(start):
    served = start()
    served.http.put("/api/monitors/m", json={"max_wait": "1 hour"})
    now = time.time()
    served.http.post("/api/monitors/m/predictions", json={"id": ["a"], "y_pred": [1], "time": [now - 60]})
    served.http.post("/api/monitors/m/predictions", json={"id": ["b"], "y_pred": [1], "time": [now + 80_000]})
    served.http.post("/api/monitors/m/labels", json={"id": ["a", "b"], "y_true": [1, 1]})
    one = served.http.get("/api/monitors/m").json()
    assert (one["events"], one["counts"]["expired"]) == (2, 0)
    assert one["last_event"] < time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now + 3_600))


@pytest.mark.parametrize("jump", [-3_600.0, -10 * 365 * 86_400.0])
def test_the_series_goes_on_when_the_clock_of_the_server_is_put_back(tmp_path, jump):
    monitor = Monitor(parse_config(b"{}"), bytes(16), Settings(data=tmp_path))
    for second in range(50):
        monitor.apply(Batch(EVENTS, 1.8e9 + 2 * second, 2, b"\0\1", b"\0\1"))
    for second in range(50):
        monitor.apply(Batch(EVENTS, 1.8e9 + jump + 2 * second, 2, b"\0\1", b"\0\1"))
    assert len(monitor.series.kept) > 90
    assert monitor.last_time == 1.8e9 + jump + 98


def test_a_clock_that_is_a_year_ahead_for_a_moment_expires_nothing(start, monkeypatch, caplog):
    served = start()
    served.http.put("/api/monitors/m", json={"max_wait": "30 days"})
    ids = [*range(1_000)]
    served.http.post("/api/monitors/m/predictions", json={"id": ids, "y_pred": [0] * 1_000})
    clock = time.time
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: clock() + 365 * 86_400.0)
        served.http.post("/api/monitors/m/events", json={"id": ["x"], "y_true": [0], "y_pred": [0]})
    assert "the clock leapt by +31536000 s" in caplog.text
    served.http.post("/api/monitors/m/labels", json={"id": ids, "y_true": [0] * 1_000})
    one = served.http.get("/api/monitors/m").json()
    assert (one["events"], one["counts"]["expired"]) == (1_001, 0)


@pytest.mark.parametrize("leap", [9e6, -9e6])
def test_a_leap_of_the_clock_is_believed_after_an_hour(leap):
    day, passed = 1e9, 0.0
    clock = Clock(lambda: day, lambda: passed)
    hour = 3_600
    for ahead, after, expected in [(30, 10, 30), (leap, 20, 40), (leap, hour, hour + 20), (leap, hour + 100, leap)]:
        day, passed = 1e9 + ahead, after
        assert clock.now() == 1e9 + expected


def test_predictions_sent_while_the_clock_was_a_year_behind_wait_like_others(start, monkeypatch):
    served = start()
    served.http.put("/api/monitors/m", json={"max_wait": "30 days"})
    clock, passed = time.time, served.app.writer.clock._passed
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: clock() - 365 * 86_400.0)
        sent = {"id": [0, 1], "y_pred": [0, 0], "time": [clock(), clock()]}
        assert served.http.post("/api/monitors/m/predictions", json=sent).json()["accepted"] == 2
        served.http.post("/api/monitors/m/predictions", json={"id": [2, 3], "y_pred": [0, 0]})
    with monkeypatch.context() as later:
        later.setattr(served.app.writer.clock, "_passed", lambda: passed() + 7_200)
        served.http.post("/api/monitors/m/events", json={"id": ["x"], "y_true": [0], "y_pred": [0]})
        served.http.post("/api/monitors/m/labels", json={"id": [0, 1, 2, 3], "y_true": [0] * 4})
    one = served.http.get("/api/monitors/m").json()
    assert (one["events"], one["counts"]["expired"]) == (5, 0)


def test_a_name_that_an_address_would_lose_is_refused():
    for name in (".", ".."):
        with pytest.raises(ApiError, match="cannot be the name of a monitor"):
            check_name(name)
    assert [check_name(name) for name in ("...", "..a", ".a", "a.")] == ["...", "..a", ".a", "a."]
