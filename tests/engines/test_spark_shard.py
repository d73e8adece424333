"""A shard of a streaming query, without Spark around it."""

import numpy as np
import pytest
from spark_session import missing, same_streams

import fourrates as fr

if reason := missing():
    pytest.skip(reason, allow_module_level=True)

import pyarrow as pa

from fourrates.engines.spark import shard as module
from fourrates.engines.spark.shard import Events, Shard

DETECTOR = fr.FourRates(1e4)


def some(size=3000, seed=0, names=None):
    random = np.random.default_rng(seed)
    key = random.integers(0, 5, size)
    truth = random.integers(0, 2, size)
    wrong = (random.random(size) < np.where(np.arange(size) > size // 2, 0.6, 0.05)).astype(int)
    keys = pa.array(key if names is None else [names[one] for one in key])
    return Events([keys], np.arange(size, dtype=np.int64), 2 * truth + (truth ^ wrong))


def ats(found):
    return sorted((one.key, one.what.at) for one in found)


@pytest.fixture(autouse=True)
def nothing_at_hand():
    module._at_hand.clear()


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "é"]])
@pytest.mark.parametrize("at_hand", [True, False])
def test_saved_between_batches_it_goes_on_as_if_nothing_had_been(names, at_hand):
    events = some(names=names)
    whole = Shard.begin(DETECTOR, 1)
    wanted = ats(whole.take(events, 2))
    assert len(wanted) >= 5
    part, found = Shard.begin(DETECTOR, 1), []
    for places in np.array_split(np.arange(3000), 7):
        found += part.take(events.take(places), 2)
        state = part.state()
        if not at_hand:
            module._at_hand.clear()
        part = Shard.restore(state, DETECTOR, 1)
    assert ats(found) == wanted
    assert same_streams(part.bank, whole.bank)


def test_a_bank_at_hand_is_used_for_its_own_events_only():
    first = Shard.begin(DETECTOR, 1)
    first.take(some(100), 2)
    before = first.state()
    again = Shard.restore(before, DETECTOR, 1)  # a task that fails after this point
    again.take(some(50, seed=1), 2)
    again.state()
    repeated = Shard.restore(before, DETECTOR, 1)
    assert repeated.bank.events == 100
    repeated.take(some(50, seed=1), 2)
    assert repeated.state()[0] == again.fingerprint
    assert repeated.state()[2] == again.state()[2]


def test_damaged_bytes_are_refused_and_uncompressed_ones_are_read():
    shard = Shard.begin(DETECTOR, 1)
    shard.take(some(100), 2)
    fingerprint, shards, saved, waiting = shard.state()
    whole = shard.bank.to_bytes()
    assert len(saved) < len(whole)
    random = np.random.default_rng(4)
    for place in random.integers(0, len(saved), 200).tolist():
        damaged = saved[:place] + bytes([saved[place] ^ 1 << int(random.integers(8))]) + saved[place + 1 :]
        module._at_hand.clear()
        try:
            read = Shard.restore((fingerprint, shards, damaged, waiting), DETECTOR, 1)
        except ValueError:
            continue
        assert read.bank.to_bytes() == whole  # a bit that nobody reads
    module._at_hand.clear()
    assert Shard.restore((fingerprint, shards, whole, waiting), DETECTOR, 1).bank.to_bytes() == whole


def test_what_waits_is_taken_in_order_when_the_watermark_has_passed_it():
    events = some()
    wanted = ats(Shard.begin(DETECTOR, 1).take(events, 2))
    shard, found = Shard.begin(DETECTOR, 1), []
    shuffled = np.argsort(np.arange(3000) + np.random.default_rng(2).uniform(0, 100, 3000))
    for places in np.array_split(shuffled, 9):
        now, late = shard.pass_watermark(events.take(places), int(places.min()) - 101, 2)
        assert late.codes.size == 0
        found += now
        shard = Shard.restore(shard.state(), DETECTOR, 1)
    assert shard.waiting.codes.size > 0
    empty = events.take(np.arange(0))
    found += shard.pass_watermark(empty, 3000, 2)[0]
    assert ats(found) == wanted
    assert shard.pass_watermark(events.take(np.arange(2)), 3000, 2)[1].codes.size == 2
