"""A shard of a streaming query, without Spark around it."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from spark_session import missing

import fourrates as fr

if reason := missing():
    pytest.skip(reason, allow_module_level=True)

import pyarrow as pa

from fourrates.engines.spark import shard as module
from fourrates.engines.spark.shard import Shard, ShardState
from fourrates.state import pack, unpack

DETECTOR = fr.FourRates(1e4)


def some(size=3000, seed=0, names=None):
    random = np.random.default_rng(seed)
    key = random.integers(0, 5, size)
    truth = random.integers(0, 2, size)
    wrong = (random.random(size) < np.where(np.arange(size) > size // 2, 0.6, 0.05)).astype(int)
    keys = key if names is None else [names[one] for one in key]
    return pa.table({"key0": keys, "time": np.arange(size).astype("M8[us]"), "code": 2 * truth + (truth ^ wrong)})


def random_events(random, size=1000):
    return pa.table({"key0": random.integers(0, 500, size), "code": random.integers(0, 4, size)})


def said(found):
    """Findings with their keys and times, but for their places."""
    bare = [(own, replace(one, row=None, started_row=None, about=None)) for own, one in found]
    return sorted(bare, key=lambda one: (str(one[0]), one[1].at))


def standing(shard):
    """All there is to know of a shard's streams, to the last digit."""
    return shard.watch.to_bytes()


class OneValue:
    """A value of a state store."""

    def __init__(self):
        self.value, self.writes = None, 0

    def get(self):
        return self.value

    def update(self, value):
        self.value = value
        self.writes += 1


class OneLog:
    """A list of a state store."""

    def __init__(self):
        self.values, self.reads = [], 0

    def get(self):
        self.reads += 1
        return iter([*self.values])

    def appendList(self, values):
        self.values += values

    def clear(self):
        self.values = []


def empty_store():
    return ShardState(OneValue(), OneValue(), OneLog())


@pytest.fixture(autouse=True)
def nothing_cached():
    module.cache.clear()


def in_micro_batches(events, batches, cached):
    """What is found in events, saved after each batch of them and with nothing cached if asked for; and the store."""
    kept, found = empty_store(), []
    for places in np.array_split(np.arange(len(events)), batches):
        part = Shard.restore(kept, DETECTOR, 1)
        found += part.take(events.take(places))
        part.save(kept)
        if not cached:
            module.cache.clear()
    return found, kept


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "é"]])
@pytest.mark.parametrize("cached", [True, False])
def test_saved_between_batches_it_goes_on_as_if_nothing_had_been(names, cached):
    events = some(names=names)
    whole = Shard.begin(DETECTOR, 1)
    wanted = said(whole.take(events))
    assert len(wanted) >= 5
    assert all(one.started_time is not None for _, one in wanted if one.kind == "drift")
    found, kept = in_micro_batches(events, 60, cached)
    assert said(found) == wanted
    assert 1 < kept.watch.writes < 60
    again = Shard.restore(kept, DETECTOR, 1).watch
    assert {name: again.segments[name].rates for name in again.segments} == {
        name: whole.watch.segments[name].rates for name in whole.watch.segments
    }


def there_and_back(size=6000):
    """Two streams; the first goes wrong for a third of the time."""
    random = np.random.default_rng(7)
    key, truth = random.integers(0, 2, size), random.integers(0, 2, size)
    away = (key == 0) & (truth == 1) & (np.arange(size) // (size // 3) == 1)
    wrong = (random.random(size) < np.where(away, 0.5, 0.05)).astype(int)
    return pa.table({"key0": key, "code": 2 * truth + (truth ^ wrong)})


@pytest.mark.parametrize("cached", [True, False])
def test_a_recovery_is_found_also_if_the_drift_was_batches_ago(cached):
    found, _ = in_micro_batches(there_and_back(), 40, cached)
    kinds = [(own, one.kind) for own, one in found if one.kind != "shift"]
    assert kinds == [([0], "drift"), ([0], "confirmation"), ([0], "recovery")]
    assert found[-1][1].closes


def test_a_batch_writes_its_events_and_now_and_then_the_watch():
    random = np.random.default_rng(3)
    kept, written = empty_store(), []
    for batch in range(40):
        shard = Shard.restore(kept, DETECTOR, 1)
        shard.take(random_events(random))
        shard.save(kept)
        written.append(kept.watch.writes)
        assert shard.head.log == sum(len(entry) for (entry,) in kept.log.values)
        assert shard.head.log <= 1.5 * module.LOGGED * shard.head.size
        assert shard.watch.events == 1000 * (batch + 1)
    assert 2 <= kept.watch.writes <= 8
    assert max(np.unique(written, return_counts=True)[1]) >= 8
    module.cache.clear()
    assert standing(Shard.restore(kept, DETECTOR, 1)) == standing(shard)


def test_a_cached_watch_is_used_for_its_own_events_only():
    kept = empty_store()
    first = Shard.restore(kept, DETECTOR, 1)
    first.take(some(100))
    first.save(kept)
    before = copy.deepcopy(kept)
    again = Shard.restore(kept, DETECTOR, 1)  # a task that fails after this point
    again.take(some(50, seed=1))
    again.save(kept)
    repeated = Shard.restore(before, DETECTOR, 1)
    assert repeated.watch.events == 100
    repeated.take(some(50, seed=1))
    repeated.save(before)
    assert repeated.head == again.head
    assert standing(repeated) == standing(again)


def test_a_worker_that_had_the_shard_some_time_ago_needs_the_events_since_only(monkeypatch):
    kept, caches = empty_store(), [module.cache.copy() for _ in range(3)]
    reads = []
    monkeypatch.setattr(kept.watch, "get", lambda: reads.append(1) or kept.watch.value)
    random = np.random.default_rng(5)
    whole = Shard.begin(DETECTOR, 1)
    for batch in range(60):
        monkeypatch.setattr(module, "cache", caches[int(random.integers(3))])  # as if in another process
        events = random_events(random)
        shard = Shard.restore(kept, DETECTOR, 1)
        assert said(shard.take(events)) == said(whole.take(events)), batch
        shard.save(kept)
        left = len(caches) + 2 * (kept.watch.writes - 1)  # a watch may stay behind when another is written
        assert sum(map(len, caches)) <= left
    assert standing(shard) == standing(whole)
    assert 2 <= len(reads) <= 2 + 2 * kept.watch.writes


@pytest.mark.parametrize("where", ["watch", "log", "head"])
def test_damaged_bytes_are_refused(where):
    kept = empty_store()
    for seed in range(6):
        shard = Shard.restore(kept, DETECTOR, 1)
        keys = pa.array(np.arange(300) % (300 if not seed else 5))
        shard.take(some(300, seed).set_column(0, "key0", keys))
        shard.save(kept)
    assert len(kept.log.values) >= 2
    whole, random = standing(shard), np.random.default_rng(4)
    for _ in range(200):
        bad = copy.deepcopy(kept)
        saved = {"watch": kept.watch.value, "log": kept.log.values[1], "head": (shard.head.fingerprint,)}[where][0]
        place = int(random.integers(0, len(saved)))
        damaged = saved[:place] + bytes([saved[place] ^ 1 << int(random.integers(8))]) + saved[place + 1 :]
        if where == "watch":
            bad.watch.value = (damaged,)
        elif where == "log":
            bad.log.values[1] = (damaged,)
        else:
            bad.head.value = (shard.head._replace(fingerprint=damaged).to_bytes(),)
        module.cache.clear()
        try:
            read = Shard.restore(bad, DETECTOR, 1)
        except ValueError:
            continue
        assert where == "watch"
        assert standing(read) == whole  # a bit that nobody reads
    kept.log.values.reverse()
    module.cache.clear()
    with pytest.raises(ValueError, match="does not lead to its head"):
        Shard.restore(kept, DETECTOR, 1)


@pytest.mark.parametrize(
    ("about", "sections"),
    [
        ({"shards": "1"}, {}),
        ({"size": -1}, {}),
        ({"log": 0.5}, {}),
        ({"wake": None}, {}),
        ({}, {"start": b"another"}),
    ],
)
def test_a_head_that_does_not_fit_is_refused(about, sections):
    kept, shard = empty_store(), Shard.begin(DETECTOR, 1)
    shard.take(some(100))
    shard.save(kept)
    found = unpack(kept.head.value[0])
    for kind, lost in (("Shard", None), ("Bank", None), ("Shard", "start")):
        rest = {name: part for name, part in (found.sections | sections).items() if name != lost}
        kept.head.value = (pack(kind, found.about | about, **rest),)
        module.cache.clear()
        with pytest.raises(
            ValueError, match=r"^(shards|size|log|wake|the saved state of a shard|this is the state of Bank)"
        ):
            Shard.restore(kept, DETECTOR, 1)


def test_events_that_wait_are_those_that_were_saved_or_are_refused():
    kept = empty_store()
    shard = Shard.restore(kept, DETECTOR, 1)
    shard.pass_watermark(some(100), 50)
    shard.save(kept, wake=51)
    assert Shard.restore(kept, DETECTOR, 1).waiting.equals(shard.waiting)
    saved, random = kept.head.value[0], np.random.default_rng(6)
    start = saved.index(shard.head.waiting)
    for _ in range(100):
        place = start + int(random.integers(0, len(shard.head.waiting)))
        kept.head.value = (saved[:place] + bytes([saved[place] ^ 1 << int(random.integers(8))]) + saved[place + 1 :],)
        with pytest.raises(ValueError, match="damaged: its checksum does not fit"):
            Shard.restore(kept, DETECTOR, 1)
    for damaged in (b"x", shard.head.waiting[:-40], shard.head.waiting[:40]):
        kept.head.value = (shard.head._replace(waiting=damaged).to_bytes(),)
        with pytest.raises(ValueError, match="the saved events of a shard are damaged"):
            Shard.restore(kept, DETECTOR, 1)


def test_other_columns_of_the_key_are_refused_with_both_named():
    kept, shard = empty_store(), Shard.begin(DETECTOR, 1, ["country string"])
    shard.take(some(100))
    shard.save(kept)
    assert Shard.restore(kept, DETECTOR, 1, ["country string"]).watch.events == 100
    for by in (["city string"], ["country int64"], ["country string", "city string"], []):
        with pytest.raises(ValueError, match=r"has streams by country string, not by (city|country|nothing)"):
            Shard.restore(kept, DETECTOR, 1, by)


def test_small_micro_batches_write_little_whatever_the_size_of_the_watch():
    kept, shard = empty_store(), Shard.begin(DETECTOR, 1)
    size = 3_000
    shard.take(pa.table({"key0": np.arange(size), "code": np.zeros(size, np.int64)}))
    shard.save(kept)
    for batch in range(40):
        shard = Shard.restore(kept, DETECTOR, 1)
        shard.take(pa.table({"key0": [batch], "code": [3]}))
        shard.save(kept)
        assert len(kept.head.value[0]) + len(kept.log.values[-1][0]) < 2_000
    assert kept.watch.writes == 1
    module.cache.clear()
    assert standing(Shard.restore(kept, DETECTOR, 1)) == standing(shard)


def test_what_waits_is_taken_in_order_when_the_watermark_has_passed_it():
    events = some()
    wanted = said(Shard.begin(DETECTOR, 1).take(events))
    kept, found = empty_store(), []
    shuffled = np.argsort(np.arange(3000) + np.random.default_rng(2).uniform(0, 100, 3000))
    for places in np.array_split(shuffled, 9):
        shard = Shard.restore(kept, DETECTOR, 1)
        now, late = shard.pass_watermark(events.take(places), int(places.min()) - 101)
        assert len(late) == 0
        found += now
        shard.save(kept, wake=0)
    shard = Shard.restore(kept, DETECTOR, 1)
    assert len(shard.waiting) > 0
    empty = events.take(np.arange(0))
    found += shard.pass_watermark(empty, 3000)[0]
    assert said(found) == wanted
    assert len(shard.pass_watermark(events.take(np.arange(2)), 3000)[1]) == 2
