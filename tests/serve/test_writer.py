"""Requests that come together are committed together, and each is answered as if it had come alone."""

import asyncio

import httpx
import msgspec
import numpy as np
import pytest

pytest.importorskip("starlette")

from fourrates.serve.batch import EVENTS, Batch, can_join, decode, joined
from fourrates.serve.bodies import Limits, Plan, make_batch, read_table
from fourrates.serve.config import parse_config
from fourrates.serve.errors import ApiError
from fourrates.serve.monitor import Monitor
from fourrates.serve.registry import Registry
from fourrates.serve.settings import Settings
from fourrates.serve.store import open_store
from fourrates.serve.store.base import SourceRow, Store, StoreError
from fourrates.serve.writer import Job, Writer

LIMITS = Limits(100_000, 1 << 24)


def events(truths, preds, shops=None, times=None):
    body = {"y_true": truths, "y_pred": preds}
    if shops is not None:
        body["by"] = {"shop": shops}
    if times is not None:
        body["time"] = times
    return body


class Together:
    """A writer whose requests of one call come in the same turn of the event loop."""

    def __init__(self, folder, config=b'{"arl": 1000}', **settings):
        self.settings = Settings(data=folder / "data", **settings)
        self.config = config

    def send(self, *groups, key_of=lambda place: None):
        """Send groups of bodies; for each body its answer, or the error it was refused with."""
        return asyncio.run(self._send(groups, key_of))

    async def _send(self, groups, key_of):
        store = open_store(self.settings)
        registry = self.registry = Registry(self.settings, store)
        registry.refresh()
        live = registry.lives.get("m") or registry.create("m", parse_config(self.config))
        self.writer = writer = Writer(registry, lambda changed, told: None)
        writer.start(asyncio.get_running_loop())
        answers = []
        for bodies in groups:
            waiting = []
            for place, body in enumerate(bodies):
                table = read_table(msgspec.json.encode(body), "application/json", live.plan.by, LIMITS)
                batch, _ = make_batch(EVENTS, table, live.plan, 1_700_000_000.0 + place, limits=LIMITS)
                key = key_of(place)
                waiting.append(writer.submit(Job(live, batch, key=key, digest=b"" if key is None else batch.truths)))
            answers += await asyncio.gather(*waiting, return_exceptions=True)
        self.entries = [entry for row in store.journal(live.row.id, 0) for entry in decode(row.body)]
        self.commits, self.monitor = writer.commits, registry.lives["m"].monitor
        await writer.stop()
        store.close()
        return [one if isinstance(one, ApiError) else msgspec.json.decode(one) for one in answers]


def test_small_requests_become_one_batch_of_the_journal_and_have_an_answer_each(tmp_path):
    together = Together(tmp_path)
    answers = together.send([events([0, 1], [0, 1]), events([1], [0]), events([], []), events([0], [0])])
    assert [one["accepted"] for one in answers] == [2, 1, 0, 1]
    assert all(one["repeated"] == one["rejected"] == 0 and one["findings"] == [] for one in answers)
    assert together.commits == 1
    (entry,) = together.entries
    assert (entry.events, entry.batch.truths, entry.batch.preds) == (4, b"\0\1\1\0", b"\0\1\0\0")
    assert together.monitor.confusion.tolist() == [[2, 0], [1, 1]]


def test_a_drift_is_named_in_the_answer_of_the_request_that_showed_it(tmp_path):
    together = Together(tmp_path)
    good = [events([1], [1])] * 300
    bad = [events([1], [0])] * 60
    answers = together.send(good, bad)
    drift, confirmed = [place for place, one in enumerate(answers) if one["findings"]]
    assert 300 < drift < confirmed
    watch = together.registry.lives["m"].monitor.watch
    assert watch.open_drift().drift.row == drift


def test_a_monitor_replayed_from_joined_batches_is_the_one_that_took_them(tmp_path):
    random = np.random.default_rng(5)
    bodies = []
    for _ in range(400):
        truths = (random.random(3) < 0.4).astype(int)
        preds = truths ^ (random.random(3) < (0.1 if len(bodies) < 200 else 0.5))
        bodies.append(events(truths.tolist(), preds.tolist(), random.choice(["a", "b", "c"], 3).tolist()))
    together = Together(tmp_path, b'{"arl": 1000, "by": ["shop"]}')
    together.send(bodies[:150], bodies[150:151], bodies[151:])
    assert len(together.entries) < 10
    assert len(together.monitor.segments) == 3
    again = Monitor(parse_config(together.config), together.monitor.key, together.settings)
    for entry in together.entries:
        again.apply(entry.batch)
    assert again.snapshot() == together.monitor.snapshot()


def test_a_request_with_too_many_segments_refuses_itself_alone(tmp_path):
    together = Together(tmp_path, b'{"arl": 1000, "by": ["shop"]}', max_segments=2)
    answers = together.send(
        [events([1], [1], ["a"]), events([1, 0], [1, 0], ["b", "c"]), events([0, 0], [0, 0], ["b", "a"])]
    )
    assert [getattr(one, "code", None) for one in answers] == [None, "too_many_segments", None]
    assert together.monitor.events == 3


def test_a_key_that_comes_twice_in_a_group_counts_once(tmp_path):
    together = Together(tmp_path)
    same, other = events([1], [1]), events([0], [0])
    answers = together.send([same, same, other, events([1], [0])], key_of=lambda place: b"same" if place < 3 else b"x")
    assert answers[0] == answers[1]
    assert answers[2].code == "key_reused"
    assert answers[3]["accepted"] == 1
    assert together.monitor.events == 2


def test_more_requests_than_a_group_holds_are_all_answered(tmp_path):
    together = Together(tmp_path, group_size=10)
    answers = together.send([events([1], [1])] * 95)
    assert sum(one["accepted"] for one in answers) == 95
    assert together.commits == 10


def test_batches_with_ids_stay_by_themselves():
    table = read_table(b'{"y_true": [1], "y_pred": [1], "id": ["a"]}', "application/json", [], LIMITS)
    batch, _ = make_batch(EVENTS, table, Plan(parse_config(b"{}")), 0.0, limits=LIMITS)
    assert not can_join(batch, batch)


def test_rows_without_a_time_keep_the_moment_they_came_at_next_to_rows_with_one():
    timed = Batch(EVENTS, 50.0, 2, b"\0\0", b"\0\0", times=np.array([1.0, 2.0]).tobytes())
    plain = Batch(EVENTS, 60.0, 1, b"\1", b"\1")
    whole = joined([timed, plain])
    assert np.frombuffer(whole.times).tolist() == [1.0, 2.0, 60.0]
    assert whole.received == 60.0
    assert joined([plain]) is plain


def test_a_store_that_fails_refuses_the_group_and_the_monitor_comes_back(tmp_path, monkeypatch):
    together = Together(tmp_path)
    commit, calls = Store.commit, []

    def failing(self, group):
        calls.append(group)
        if len(calls) == 1:
            raise StoreError("no room")
        commit(self, group)

    monkeypatch.setattr(Store, "commit", failing)
    answers = together.send([events([1], [1])] * 3, [events([0], [0])] * 2)
    assert [getattr(one, "status", 200) for one in answers] == [503] * 3 + [200] * 2
    assert together.monitor.events == 2


@pytest.mark.parametrize("failing", ["apply", "finding"])
def test_a_defect_with_one_batch_is_that_of_its_request_alone(tmp_path, monkeypatch, failing):
    together = Together(tmp_path, b'{"arl": 1000, "reference": [[900, 100], [100, 900]]}')
    apply, finding = Monitor.apply, Registry.finding

    def half_applied(self, batch):
        outcome = apply(self, batch)
        if batch.size == 77:
            raise TypeError("a defect")
        return outcome

    def not_found(self, live, found, first, pending):
        if pending[-1].batch.size == 77:
            raise TypeError("a defect")
        return finding(self, live, found, first, pending)

    if failing == "apply":
        monkeypatch.setattr(Monitor, "apply", half_applied)
    else:
        monkeypatch.setattr(Registry, "finding", not_found)
    monkeypatch.setattr("fourrates.serve.batch.JOINED", 60)
    good, bad = events([1] * 50, [1] * 50), events([1] * 77, [0] * 77)
    answers = together.send([good, bad, good, good, bad, good])
    codes = [getattr(one, "code", None) for one in answers]
    assert codes == [None, "defect", None, None, "defect", None]
    assert together.monitor.events == 200
    assert sum(entry.events for entry in together.entries) == 200


def test_a_request_to_another_monitor_does_not_see_a_defect(start, monkeypatch):
    served = start()
    for name in ("m", "other"):
        served.http.put(f"/api/monitors/{name}", json={"labels": [0, 1]})
    apply = Monitor.apply
    broken = served.app.registry.lives["m"].monitor.key

    def failing(self, batch):
        if self.key == broken:
            raise TypeError("a defect")
        return apply(self, batch)

    monkeypatch.setattr(Monitor, "apply", failing)

    async def both():
        async with httpx.AsyncClient(base_url=served.url, timeout=30) as http:
            sent = [("m", 7), ("other", 2)] * 20
            calls = [http.post(f"/api/monitors/{n}/events", json=events([1] * k, [1] * k)) for n, k in sent]
            return [answer.status_code for answer in await asyncio.gather(*calls)]

    assert asyncio.run(both()) == [500, 200] * 20
    assert served.http.get("/api/monitors/other").json()["events"] == 40


def test_a_place_in_a_topic_from_before_another_server_read_it_is_refused(start):
    served = start()
    served.http.put("/api/monitors/m", json={})
    service = served.app
    live, batch = service.registry.lives["m"], Batch(EVENTS, 1e9, 1, b"\1", b"\1")

    async def hand_in(epoch):
        await service.writer.submit(Job(live, batch, source=SourceRow(live.row.id, "g/t", 0, 7, epoch)))

    loop = service.writer._loop
    with pytest.raises(ApiError, match="another server has read this topic"):
        asyncio.run_coroutine_threadsafe(hand_in(service.store.epoch - 1), loop).result(10)
    assert service.store.next_of_source(live.row.id, "g/t", 0) is None
    asyncio.run_coroutine_threadsafe(hand_in(service.store.epoch), loop).result(10)
    assert service.store.next_of_source(live.row.id, "g/t", 0) == 7
    assert served.http.get("/api/monitors/m").json()["events"] == 1
