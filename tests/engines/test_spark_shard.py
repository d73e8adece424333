"""A shard of a streaming query, without Spark around it."""

import copy

import numpy as np
import pytest
from spark_session import missing, same_streams

import fourrates as fr

if reason := missing():
    pytest.skip(reason, allow_module_level=True)

import pyarrow as pa

from fourrates.engines.spark import kept as store
from fourrates.engines.spark import shard as module
from fourrates.engines.spark.shard import Events, Shard
from fourrates.engines.spark.shard_state import ShardState
from fourrates.state import pack, unpack

DETECTOR = fr.FourRates(1e4)


def some(size=3000, seed=0, names=None):
    random = np.random.default_rng(seed)
    key = random.integers(0, 5, size)
    truth = random.integers(0, 2, size)
    wrong = (random.random(size) < np.where(np.arange(size) > size // 2, 0.6, 0.05)).astype(int)
    keys = pa.array(key if names is None else [names[one] for one in key])
    return Events([keys], np.arange(size, dtype=np.int64), 2 * truth + (truth ^ wrong))


def ats(found):
    return sorted((one.key, one.finding.at, one.finding.kind) for one in found)


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
    return ShardState(OneValue(), OneValue(), OneLog(), OneValue())


@pytest.fixture(autouse=True)
def nothing_at_hand():
    module.at_hand.clear()


def in_micro_batches(events, batches, at_hand):
    """What is found in events, saved after each batch of them and with nothing at hand if asked for; and the store."""
    kept, found = empty_store(), []
    for places in np.array_split(np.arange(events.codes.size), batches):
        part = Shard.restore(kept, DETECTOR, 1)
        found += part.take(events.take(places))
        part.save(kept)
        if not at_hand:
            module.at_hand.clear()
    return found, kept


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "é"]])
@pytest.mark.parametrize("at_hand", [True, False])
def test_saved_between_batches_it_goes_on_as_if_nothing_had_been(names, at_hand):
    events = some(names=names)
    whole = Shard.begin(DETECTOR, 1)
    wanted = ats(whole.take(events))
    assert len(wanted) >= 5
    found, kept = in_micro_batches(events, 60, at_hand)
    assert ats(found) == wanted
    assert 1 < kept.bank.writes < 60
    assert same_streams(Shard.restore(kept, DETECTOR, 1).bank, whole.bank)


def there_and_back(size=6000):
    """Two streams; the first goes wrong for a third of the time."""
    random = np.random.default_rng(7)
    key, truth = random.integers(0, 2, size), random.integers(0, 2, size)
    away = (key == 0) & (truth == 1) & (np.arange(size) // (size // 3) == 1)
    wrong = (random.random(size) < np.where(away, 0.5, 0.05)).astype(int)
    return Events([pa.array(key)], np.empty(0, np.int64), 2 * truth + (truth ^ wrong))


@pytest.mark.parametrize("at_hand", [True, False])
def test_a_recovery_is_found_also_if_the_drift_was_batches_ago(at_hand):
    found, _ = in_micro_batches(there_and_back(), 40, at_hand)
    kinds = [(one.key, one.finding.kind) for one in found if one.finding.kind != "shift"]
    assert kinds == [((0,), "drift"), ((0,), "confirmation"), ((0,), "recovery")]
    assert found[-1].finding.closes


def test_a_batch_writes_its_events_and_now_and_then_the_bank():
    random = np.random.default_rng(3)
    kept, written = empty_store(), []
    for batch in range(40):
        shard = Shard.restore(kept, DETECTOR, 1)
        keys = random.integers(0, 500, 1000)
        shard.take(Events([pa.array(keys)], np.empty(0, np.int64), random.integers(0, 4, 1000)))
        shard.save(kept)
        written.append(kept.bank.writes)
        assert shard.head.log <= 1.5 * module.LOGGED * shard.head.bank
        assert sum(map(len, shard.head.recent)) <= store.RECENT * shard.head.bank
        assert shard.bank.events == 1000 * (batch + 1)
    assert 2 <= kept.bank.writes <= 8
    assert max(np.unique(written, return_counts=True)[1]) >= 8
    module.at_hand.clear()
    assert Shard.restore(kept, DETECTOR, 1).bank.to_bytes() == shard.bank.to_bytes()


def test_a_bank_at_hand_is_used_for_its_own_events_only():
    kept = empty_store()
    first = Shard.restore(kept, DETECTOR, 1)
    first.take(some(100))
    first.save(kept)
    before = copy.deepcopy(kept)
    again = Shard.restore(kept, DETECTOR, 1)  # a task that fails after this point
    again.take(some(50, seed=1))
    again.save(kept)
    repeated = Shard.restore(before, DETECTOR, 1)
    assert repeated.bank.events == 100
    repeated.take(some(50, seed=1))
    repeated.save(before)
    assert repeated.head == again.head
    assert repeated.bank.to_bytes() == again.bank.to_bytes()


def test_a_worker_that_had_the_shard_some_time_ago_needs_the_last_events_only(monkeypatch):
    kept, hands = empty_store(), [module.at_hand.copy() for _ in range(3)]
    monkeypatch.setattr(store, "RECENT", 0.05)
    reads = []
    monkeypatch.setattr(kept.bank, "get", lambda: reads.append(1) or kept.bank.value)
    random = np.random.default_rng(5)
    whole = Shard.begin(DETECTOR, 1)
    for batch in range(60):
        monkeypatch.setattr(module, "at_hand", hands[int(random.integers(3))])  # as if in another process
        events = Events([pa.array(random.integers(0, 500, 1000))], np.empty(0, np.int64), random.integers(0, 4, 1000))
        shard = Shard.restore(kept, DETECTOR, 1)
        assert ats(shard.take(events)) == ats(whole.take(events)), batch
        shard.save(kept)
        left = len(hands) + 2 * (kept.bank.writes - 1)  # a bank may stay behind when another is written
        assert sum(map(len, hands)) <= left
    assert shard.bank.to_bytes() == whole.bank.to_bytes()
    assert 2 <= len(reads) <= 6
    assert kept.log.reads <= 15


@pytest.mark.parametrize("where", ["bank", "log", "recent", "head"])
def test_damaged_bytes_are_refused(monkeypatch, where):
    kept = empty_store()
    monkeypatch.setattr(store, "RECENT", 0.008)
    for seed in range(6):
        shard = Shard.restore(kept, DETECTOR, 1)
        keys = pa.array(np.arange(300) % (300 if not seed else 5))
        shard.take(some(300, seed)._replace(keys=[keys]))
        shard.save(kept)
    assert len(kept.log.values) >= 2
    assert len(shard.head.recent) >= 1
    whole, random = shard.bank.to_bytes(), np.random.default_rng(4)
    for _ in range(200):
        bad = copy.deepcopy(kept)
        recent = shard.head.recent
        saved = {
            "bank": kept.bank.value[0],
            "log": kept.log.values[1][0],
            "recent": recent[0],
            "head": shard.head.fingerprint,
        }[where]
        place = int(random.integers(0, len(saved)))
        damaged = saved[:place] + bytes([saved[place] ^ 1 << int(random.integers(8))]) + saved[place + 1 :]
        if where == "bank":
            bad.bank.value = (damaged,)
        elif where == "log":
            bad.log.values[1] = (damaged,)
        elif where == "recent":
            bad.head.value = (shard.head._replace(recent=(damaged, *recent[1:])).to_bytes(),)
        else:
            bad.head.value = (shard.head._replace(fingerprint=damaged).to_bytes(),)
        module.at_hand.clear()
        try:
            read = Shard.restore(bad, DETECTOR, 1)
        except ValueError:
            continue
        assert where == "bank"
        assert read.bank.to_bytes() == whole  # a bit that nobody reads
    kept.log.values.reverse()
    with pytest.raises(ValueError, match="does not lead to what its head names"):
        Shard.restore(kept, DETECTOR, 1)


@pytest.mark.parametrize(
    ("about", "sections"),
    [
        ({"shards": "1"}, {}),
        ({"bank": -1}, {}),
        ({"log": 0.5}, {}),
        ({"wake": None}, {}),
        ({}, {"turn": b"another"}),
        ({}, {"recent9": b"no events"}),
    ],
)
def test_a_head_that_does_not_fit_is_refused(about, sections):
    kept, shard = empty_store(), Shard.begin(DETECTOR, 1)
    shard.take(some(100))
    shard.save(kept)
    found = unpack(kept.head.value[0])
    for kind, lost in (("Shard", None), ("Bank", None), ("Shard", "marked")):
        rest = {name: part for name, part in (found.sections | sections).items() if name != lost}
        kept.head.value = (pack(kind, found.about | about, **rest),)
        module.at_hand.clear()
        with pytest.raises(
            ValueError, match=r"^(shards|bank|log|wake|the saved state of a shard|this is the state of Bank)"
        ):
            Shard.restore(kept, DETECTOR, 1)


def test_events_that_wait_are_those_that_the_head_names_or_are_refused():
    kept = empty_store()
    shard = Shard.restore(kept, DETECTOR, 1)
    shard.pass_watermark(some(100), 50)
    shard.save(kept, wake=51)
    assert Shard.restore(kept, DETECTOR, 1).waiting.codes.tolist() == shard.waiting.codes.tolist()
    saved, random = kept.waiting.value[0], np.random.default_rng(6)
    for _ in range(100):
        place = int(random.integers(0, len(saved)))
        kept.waiting.value = (
            saved[:place] + bytes([saved[place] ^ 1 << int(random.integers(8))]) + saved[place + 1 :],
        )
        with pytest.raises(ValueError, match="events that wait are not those of its head"):
            Shard.restore(kept, DETECTOR, 1)
    kept.waiting.value = None
    for without in (kept, kept._replace(waiting=None)):
        with pytest.raises(ValueError, match="events that wait are not those of its head"):
            Shard.restore(without, DETECTOR, 1)


def test_other_columns_of_the_key_are_refused_with_both_named():
    kept, shard = empty_store(), Shard.begin(DETECTOR, 1, ["country string"])
    shard.take(some(100))
    shard.save(kept)
    assert Shard.restore(kept, DETECTOR, 1, ["country string"]).bank.events == 100
    for by in (["city string"], ["country int64"], ["country string", "city string"], []):
        with pytest.raises(ValueError, match=r"has streams by country string, not by (city|country|nothing)"):
            Shard.restore(kept, DETECTOR, 1, by)


def test_small_micro_batches_write_little_whatever_the_size_of_the_bank():
    kept, shard = empty_store(), Shard.begin(DETECTOR, 1)
    size = 3_000
    shard.take(Events([pa.array(np.arange(size))], np.empty(0, np.int64), np.zeros(size, np.int64)))
    shard.save(kept)
    for batch in range(40):
        shard = Shard.restore(kept, DETECTOR, 1)
        shard.take(Events([pa.array([batch])], np.empty(0, np.int64), np.array([3])))
        shard.save(kept)
        (entry,) = {len(one) for one in shard.head.recent}
        assert len(kept.head.value[0]) < store.ENTRIES * entry + 1_000
    assert kept.bank.writes == 1
    module.at_hand.clear()
    assert Shard.restore(kept, DETECTOR, 1).bank.to_bytes() == shard.bank.to_bytes()


def test_what_waits_is_taken_in_order_when_the_watermark_has_passed_it():
    events = some()
    wanted = ats(Shard.begin(DETECTOR, 1).take(events))
    kept, found = empty_store(), []
    shuffled = np.argsort(np.arange(3000) + np.random.default_rng(2).uniform(0, 100, 3000))
    for places in np.array_split(shuffled, 9):
        shard = Shard.restore(kept, DETECTOR, 1)
        now, late = shard.pass_watermark(events.take(places), int(places.min()) - 101)
        assert late.codes.size == 0
        found += now
        shard.save(kept, wake=0)
    shard = Shard.restore(kept, DETECTOR, 1)
    assert shard.waiting.codes.size > 0
    empty = events.take(np.arange(0))
    found += shard.pass_watermark(empty, 3000)[0]
    assert ats(found) == wanted
    assert shard.pass_watermark(events.take(np.arange(2)), 3000)[1].codes.size == 2
