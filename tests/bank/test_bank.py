"""A bank is one detector for each key, only smaller and faster; and what it does with bad input and files."""

import math
import os
import pickle
import struct
import subprocess
import sys
import threading
import zlib
from collections import Counter
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fourrates as fr
from fourrates.bank.taking import by_stream
from fourrates.findings import KeyedFinding
from fourrates.record import HEAD
from fourrates.state import VERSION

RATES = 0.9  # of right predictions


def events(size, streams, seed=0, classes=2, drift=None):
    """Keys in random order, and pairs of labels; from event `drift` on every third stream goes wrong."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, streams, size)
    truth = random.integers(0, classes, size)
    right = np.full(size, RATES)
    if drift is not None:
        right[(np.arange(size) >= drift) & (keys % 3 == 0)] = 0.4
    pred = np.where(random.random(size) < right, truth, (truth + random.integers(1, classes, size)) % classes)
    return keys, truth, pred


def one_by_one(detector, keys, truth, pred):
    """What one detector for each key finds, in the order of the events, and the detectors."""
    detectors = {key: detector(key) for key in dict.fromkeys(keys)}
    drifts = []
    for event, (key, t, g) in enumerate(zip(keys, truth.tolist(), pred.tolist(), strict=True)):
        if drift := detectors[key].update(t, g):
            drifts.append(KeyedFinding(key, event, drift))
    return drifts, detectors


def state(detector):
    """All that goes into alarms and reports, without what a bank keeps for itself: key, latest event, alarms."""
    flags = detector.drift_detected, detector.warning_detected
    return detector.events, detector.warning_since, flags, detector.record_bytes[HEAD.itemsize :]


@pytest.fixture(scope="module")
def detector(request):
    """Made when it is needed, not when tests are collected: LFR has its tables to build."""
    return request.param()


def states(bank):
    return {key: state(bank[key]) for key in bank}


@pytest.mark.parametrize(
    ("detector", "streams", "size"),
    [
        pytest.param(partial(fr.LFR, detect=1e-3), 200, 60_000, id="short streams"),
        pytest.param(partial(fr.LFR, detect=1e-3), 3, 60_000, id="long streams"),
        pytest.param(partial(fr.LFR, 0.98, detect=1e-3), 20, 40_000, id="slow decay", marks=pytest.mark.slow),
        pytest.param(partial(fr.LFR, (0.8, 0.94), 0.05, 1e-3), 20, 40_000, id="two decays", marks=pytest.mark.slow),
        pytest.param(
            partial(fr.LFR, {"tpr": (0.7, 0.9), "ppv": 0.8}, detect=1e-3),
            20,
            40_000,
            id="decays by rate",
            marks=pytest.mark.slow,
        ),
        pytest.param(partial(fr.LFR, detect=1e-3, sides="down"), 20, 40_000, id="one side"),
        pytest.param(partial(fr.LFR, detect=1e-3, sides={"tpr": "up", "npv": "down"}), 20, 40_000, id="sides by rate"),
        pytest.param(partial(fr.LFR, detect=1e-3, null="plugin"), 20, 40_000, id="plug-in"),
        pytest.param(partial(fr.LFR, detect=1e-3, labels=range(5)), 10, 60_000, id="five classes"),
        pytest.param(
            partial(fr.LFR, (0.9, 0.94), detect=1e-3, labels=range(3)),
            10,
            40_000,
            id="three classes, two decays",
            marks=pytest.mark.slow,
        ),
        pytest.param(partial(fr.FourRates, 2_000), 200, 60_000, id="FourRates, short streams", marks=pytest.mark.slow),
        pytest.param(partial(fr.FourRates, 2_000), 3, 60_000, id="FourRates, long streams"),
        pytest.param(partial(fr.FourRates, 2_000, mix="alarm", sides="down"), 20, 40_000, id="FourRates, one side"),
        pytest.param(partial(fr.FourRates, 2_000, labels=range(5)), 10, 60_000, id="FourRates, five classes"),
        pytest.param(
            partial(fr.FourRates, 2_000, reference=[[900, 100], [100, 900]]),
            20,
            40_000,
            id="FourRates with a reference",
        ),
        pytest.param(
            partial(
                fr.FourRates, 2_000, reference=[[900, 100], [100, 900]], after="restart", dispersion=1.0, mix="ignore"
            ),
            20,
            40_000,
            id="FourRates with a reference for the first concept",
        ),
    ],
    indirect=["detector"],
)
def test_a_bank_finds_what_one_detector_for_each_key_finds(detector, streams, size):
    classes = len(detector.parameters["labels"])
    keys, truth, pred = events(size, streams, seed=size + streams, classes=classes, drift=size // 2)
    drifts, detectors = one_by_one(lambda _: detector.clone(), keys.tolist(), truth, pred)
    bank = fr.Bank(detector)
    found = []
    for part in np.array_split(np.arange(size), [1, 7, 1000, size // 3, size // 2]):
        found += bank.update(keys[part], truth[part], pred[part])
    assert found == drifts
    assert len(drifts) > 5
    assert states(bank) == {key: state(one) for key, one in detectors.items()}


@pytest.mark.slow
@pytest.mark.parametrize("streams", [2, 300, 5_000, 6_000_000])  # one pass, two, three
@pytest.mark.parametrize("size", [0, 1, 255, 256, 20_000])
def test_events_are_taken_stream_by_stream_and_those_of_a_stream_in_order(streams, size):
    random = np.random.default_rng(size)
    slots = random.integers(0, streams, size, dtype=np.int32)
    truths, preds = random.integers(0, 3, (2, size)).astype(np.uint16)
    found, truth, pred, places = by_stream(slots, truths, preds, streams)
    order = np.argsort(slots, kind="stable") if size >= 256 else np.arange(size)
    np.testing.assert_array_equal(places, order)
    for got, given_ in ((found, slots), (truth, truths), (pred, preds)):
        np.testing.assert_array_equal(got, given_[order])


def test_drifts_and_shifts_of_a_batch_come_in_the_order_of_arrival():
    keys, truth, pred = events(60_000, 40, seed=3, drift=20_000)
    truth, pred = np.where(np.arange(truth.size) < 40_000, [truth, pred], 1)  # at last there is one class only
    bank, whole = fr.Bank(arl=2_000), fr.Bank(arl=2_000)
    drifts = whole.update(keys, truth, pred)
    parts = zip(*(np.array_split(one, 500) for one in (keys, truth, pred)), strict=True)
    pieces = [(bank.update(*part), bank.findings) for part in parts]
    assert drifts == [drift for found, _ in pieces for drift in found]
    assert whole.findings == [finding for _, found in pieces for finding in found]
    assert len(drifts) > 10
    kinds = Counter(one.finding.kind for one in whole.findings)
    assert kinds["shift"] > 10
    assert kinds["drift"] == len(drifts)
    assert kinds["confirmation"] > 5
    assert [drift.event for drift in drifts] == sorted(drift.event for drift in drifts)


def test_streams_with_and_without_a_reference_of_their_own_share_a_bank():
    keys, truth, pred = events(20_000, 4, seed=5, drift=10_000)
    references = {0: [[90, 10], [10, 90]], 2: [[900, 100], [100, 900]]}
    bank = fr.Bank(fr.FourRates(5_000), reference=references)
    drifts = bank.update(keys, truth, pred)
    expected, detectors = one_by_one(
        lambda key: fr.FourRates(5_000, reference=references.get(key)), keys.tolist(), truth, pred
    )
    assert drifts == expected
    assert {drift.key for drift in drifts} >= {0, 3}
    for key, detector in detectors.items():
        assert bank[key].rates == detector.rates
    assert len(bank.alarm_levels()[0]) == 4
    assert fr.Bank.from_bytes(bank.to_bytes()).events == bank.events


@pytest.mark.slow
@pytest.mark.parametrize(("decay", "swing"), [(0.9, 0.03), (0.99, 0.004)])
def test_a_stream_of_a_million_events_is_followed_to_the_bit(decay, swing):
    # A swing so slow and small that it seldom alarms, so that statistics come to stand at every place of the far rows.
    random = np.random.default_rng(6)
    truth = random.random(1_000_000) < 0.4
    wrong = 0.1 + swing * np.sin(np.arange(truth.size) / 300)
    pred = truth ^ (random.random(truth.size) < wrong)
    alone, bank = fr.LFR(decay, 0.01, 1e-6), fr.Bank(fr.LFR(decay, 0.01, 1e-6))
    for part in np.array_split(np.arange(truth.size), 5):
        drifts = alone.update_many(truth[part], pred[part])
        assert [one.finding for one in bank.update(np.full(part.size, 7), truth[part], pred[part])] == drifts
        assert state(bank[7]) == state(alone)
    assert sum(state.n for state in alone.rates.values()) > 100_000


@pytest.mark.parametrize(
    "detector", [partial(fr.LFR, 0.6, 0.2, 0.1), partial(fr.FourRates, 100)], ids=["LFR", "FourRates"], indirect=True
)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=400),
    cuts=st.lists(st.integers(0, 400), max_size=3),
)
@settings(max_examples=50, deadline=None)
def test_any_events_in_any_batches_leave_the_same_states(detector, pairs, cuts):
    bank = fr.Bank(detector)
    keys, truth, pred = map(np.array, zip(*pairs, strict=True)) if pairs else ([], np.empty(0), np.empty(0))
    drifts, detectors = one_by_one(lambda _: detector.clone(), list(keys), truth, pred)
    found = []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(pairs)], strict=True):
        part = pairs[begin:end]
        found += bank.update(*([row[i] for row in part] for i in range(3)))
    assert found == drifts
    assert states(bank) == {int(key): state(one) for key, one in detectors.items()}


@pytest.mark.parametrize("detector", [fr.LFR, fr.FourRates], ids=["LFR", "FourRates"], indirect=True)
def test_a_stream_of_a_bank_is_a_detector_that_has_seen_its_events(detector):
    keys, truth, pred = events(3000, 3, drift=2000)
    bank = fr.Bank(detector)
    bank.update([0], [1], [1])
    before = bank[0]
    assert (before.events, before.confusion) == (1, ((0, 0), (0, 1)))
    _, detectors = one_by_one(lambda _: detector.clone(), [0, *keys.tolist()], np.r_[1, truth], np.r_[1, pred])
    bank.update(keys, truth, pred)
    alone, stream = detectors[0], bank[0]
    assert before.events == 1
    assert state(stream) == state(alone)
    assert (stream.drift_detected, stream.warning_detected) == (alone.drift_detected, alone.warning_detected)
    stream.update(1, 1)
    assert stream.events == bank[0].events + 1
    with pytest.raises(KeyError, match="7"):
        bank[7]
    assert 7 not in bank
    assert [] not in bank
    assert 0.0 in bank


@pytest.mark.slow
@pytest.mark.parametrize(
    "detector", [partial(fr.LFR, 0.6, 0.2, 0.1), partial(fr.FourRates, 100)], ids=["LFR", "FourRates"], indirect=True
)
def test_flags_are_those_of_the_last_event_of_the_stream(detector):
    bank, alone = fr.Bank(detector), detector.clone()
    random = np.random.default_rng(3)
    seen = set()
    for truth, pred in random.integers(0, 2, (500, 2)).tolist():
        drifts = bank.update(["a", "b"], [truth, 1], [pred, 1])
        drift = alone.update(truth, pred)
        assert [one.finding for one in drifts if one.key == "a"] == ([drift] if drift else [])
        flags = bank["a"].drift_detected, bank["a"].warning_detected
        assert flags == (alone.drift_detected, alone.warning_detected)
        seen.add(flags)
    assert seen == {(False, False), (False, True), (True, False)}


# Keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(["b", "a", "b", "c"], id="strings"),
        pytest.param(np.array(["b", "a", "b", "c"]), id="array of strings"),
        pytest.param(np.array([b"b", b"a", b"b", b"c"]), id="array of bytes"),
        pytest.param(np.array(["b", 1, "b", (1, 2)], object), id="objects"),
        pytest.param([2, "2", 2.0, b"2"], id="mixed types"),
        pytest.param([("x", 1), ("y", 1), ("x", 1), ("x", 2)], id="tuples"),
        pytest.param(np.array([7, -9, 7, 10**18]), id="far integers"),
        pytest.param(np.array([7, 2**64 - 1, 7, 2**63], np.uint64), id="unsigned"),
        pytest.param([7, 2**64 - 1, 7, 2**63], id="large ints"),
        pytest.param([-(2**63), -1, -(2**63), 2**64 - 1], id="same bits, other keys"),
        pytest.param([2**70, 5, 2**70, -(2**70)], id="ints beyond 64 bits"),
        pytest.param(np.array([1.5, 2.0, 1.5, np.inf]), id="floats"),
        pytest.param(np.array([3.0, 2.0, 3.0, -1.0]), id="whole floats"),
        pytest.param(np.array([1, 0, 1, 3], ">i2"), id="foreign byte order"),
        pytest.param(np.arange(8)[::2] % 6, id="strided"),
        pytest.param(pa.array(["b", "a", "b", "c"]), id="Arrow"),
        pytest.param(pa.array(["b", "a", "b", "c"]).dictionary_encode(), id="Arrow dictionary"),
        pytest.param(pa.chunked_array([["b", "a"], ["b", "c"]]), id="Arrow in chunks"),
        pytest.param(pa.chunked_array([["b", "a"], ["b", "c"]]).dictionary_encode(), id="Arrow dictionary in chunks"),
        pytest.param(pa.array([5, 4, 5, 10**15]), id="Arrow integers"),
        pytest.param(pd.Series(["b", "a", "b", "c"]), id="pandas"),
        pytest.param(pd.Series(["b", "a", "b", "c"], dtype="category"), id="pandas categories"),
        pytest.param(pd.Categorical([3, 2, 3, 9]), id="categories of integers"),
        pytest.param(pl.Series(["b", "a", "b", "c"]), id="polars"),
        pytest.param([Decimal(2), 1, 2, Decimal("2.5")], id="decimals"),
        pytest.param([True, False, 1, 2], id="bools"),
    ],
)
def test_keys_of_every_kind(keys):
    bank = fr.Bank()
    for _ in range(3):
        bank.update(keys, [1, 0, 1, 1], [1, 1, 0, 1])
    names = keys.to_pylist() if hasattr(keys, "to_pylist") else keys if isinstance(keys, list) else list(keys)
    counted = {name: 3 * sum(1 for other in names if other == name) for name in names}
    assert {key: bank[key].events for key in bank} == counted
    assert all(name in bank for name in names)


def test_a_dictionary_begins_streams_only_for_keys_that_occur():
    keys = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2]), pa.array(["a", None, "c", "d"]))
    bank = fr.Bank()
    bank.update(keys, [1, 1, 1], [1, 1, 1])
    assert set(bank) == {"a", "c"}


# Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "y_true", "y_pred", "message"),
    [
        (["a", "new", "b"], [0, 1, 2], [0, 0, 0], "position 2: 2 in column 'y_true'"),
        (["a", "new", "b"], [0, 1, 1], [0, 0, None], "position 2: None in column 'y_pred'"),
        (["a", "new", None], [0, 1, 1], [0, 0, 0], "keys: None at position 2"),
        (["a", "new", math.nan], [0, 1, 1], [0, 0, 0], "keys: nan at position 2"),
        (["a", "new", []], [0, 1, 1], [0, 0, 0], r"keys: \[\] at position 2"),
        (["a", "new", pd.NA], [0, 1, 1], [0, 0, 0], "keys: <NA> at position 2"),
        (np.array([1, 2, math.nan]), [0, 1, 1], [0, 0, 0], "keys: nan at position 2"),
        (pa.array(["a", "new", None]), [0, 1, 1], [0, 0, 0], "keys: None at position 2"),
        (pa.array([1, 2, None]), [0, 1, 1], [0, 0, 0], "keys: None at position 2"),
        (pd.Series(["a", "new", None], dtype="category"), [0, 1, 1], [0, 0, 0], "keys: None at position 2"),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), [0, 1, 1], [0, 0, 0], "keys: 'masked' at position 2"),
        (np.zeros((3, 2)), [0, 1, 1], [0, 0, 0], "2 dimensions"),
        (np.zeros(3, "M8[ns]"), [0, 1, 1], [0, 0, 0], "datetime64"),
        ("abc", [0, 1, 1], [0, 0, 0], "'abc'"),
        (iter("abc"), [0, 1, 1], [0, 0, 0], "an array or a list"),
        (["a", "new"], [0, 1, 1], [0, 0, 0], "keys has 2 events, y_true has 3, y_pred has 3"),
        (["a", "new", "b"], [0, 1, 1], [0, 0], "y_pred has 2"),
    ],
)
def test_a_batch_with_one_bad_row_changes_nothing(keys, y_true, y_pred, message, tmp_path):
    bank = fr.Bank(fr.LFR())
    bank.update(["a", 1, "a", (1, 2)], [0, 0, 1, 1], [0, 1, 1, 1])
    before, events_before, size = states(bank), bank.events, bank.nbytes
    with pytest.raises((ValueError, TypeError), match=message):
        bank.update(keys, y_true, y_pred)
    assert states(bank) == before
    assert (bank.events, bank.nbytes, len(bank)) == (events_before, size, 3)
    bank.update(["new", 5], [1, 1], [1, 1])
    assert set(bank) == {"a", (1, 2), 1, "new", 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: {"detector": fr.baselines.DDM()}, "the detector is neither a FourRates nor an LFR"),
        (lambda: {"detector": fr.LFR(), "arl": 1000}, "give the detector its arl"),
    ],
)
def test_settings_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fr.Bank(**arguments())


# Eviction, merging ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("detector", [fr.LFR, fr.FourRates], ids=["LFR", "FourRates"], indirect=True)
def test_evicted_streams_begin_anew_and_the_others_go_on(detector):
    keys, truth, pred = events(30_000, 30, drift=15_000)
    names = [*range(10), *(f"s{i}" for i in range(10)), *(2**64 - 1 - i for i in range(10))]
    named = [names[key] for key in keys]
    bank = fr.Bank(detector)
    bank.update(named[:20_000], truth[:20_000], pred[:20_000])
    before = states(bank)
    assert bank.evict([3, "s4", 2**64 - 1]) == 3
    assert states(bank) == {key: state for key, state in before.items() if key not in (3, "s4", 2**64 - 1)}
    with pytest.raises(KeyError, match="'s4' at position 1"):
        bank.evict([5, "s4"])
    assert len(bank) == 27
    _, detectors = one_by_one(lambda _: detector.clone(), named, truth, pred)
    bank.update(named[20_000:], truth[20_000:], pred[20_000:])
    assert len(bank) == 30
    for key in ("s1", 5, 2**64 - 2):
        assert state(bank[key]) == state(detectors[key])
    assert bank["s4"].events < detectors["s4"].events


def test_idle_streams_are_evicted():
    bank = fr.Bank()
    bank.update(["a", "b", "c", "a"], [1, 1, 1, 1], [1, 1, 1, 1])
    assert bank.evict(idle=4) == 0
    assert bank.evict(idle=2) == 1
    assert set(bank) == {"a", "c"}
    assert bank.evict(idle=0) == 2
    assert len(bank) == 0
    bank.update(["b"], [1], [1])
    assert bank["b"].events == 1
    with pytest.raises(ValueError, match="keys or idle"):
        bank.evict()


def test_merged_banks_are_one_that_saw_both():
    keys, truth, pred = events(40_000, 40, drift=10_000)
    names = np.array([f"s{key}" if key % 2 else str(key) for key in range(40)], object)
    names[::4] = range(10)
    parts = [keys < 20, keys >= 20]
    whole = fr.Bank()
    banks = [fr.Bank(), fr.Bank()]
    for part, bank in zip(parts, banks, strict=True):
        bank.update(names[keys[part]], truth[part], pred[part])
        whole.update(names[keys[part]], truth[part], pred[part])
    second = states(banks[1])
    banks[0].merge(banks[1])
    assert states(banks[0]) == states(whole)
    assert banks[0].events == whole.events
    assert states(banks[1]) == second
    more = events(10_000, 40, seed=1)
    assert banks[0].update(names[more[0]], *more[1:]) == whole.update(names[more[0]], *more[1:])
    assert banks[0].evict(idle=5000) == whole.evict(idle=5000)
    assert set(banks[0]) == set(whole)


def test_banks_that_do_not_go_together_are_not_merged():
    one, other = fr.Bank(), fr.Bank()
    one.update([1, "a"], [1, 1], [1, 1])
    other.update([2, "a"], [1, 1], [1, 1])
    before = states(one)
    with pytest.raises(ValueError, match="key 'a' is in both banks"):
        one.merge(other)
    with pytest.raises(ValueError, match="arl is 100000 here and 5000 there"):
        one.merge(fr.Bank(arl=5_000))
    with pytest.raises(ValueError, match="settings: FourRates here and LFR there"):
        one.merge(fr.Bank(fr.LFR()))
    assert states(one) == before


# Files ------------------------------------------------------------------------------------------------------------

KEYS = ["a", 1, -5, 2**64 - 1, 2**70, 1.5, b"x", ("x", 1, b"y", None), "é"]


@pytest.fixture(params=[partial(fr.LFR, detect=1e-3), partial(fr.FourRates, 1_000)], ids=["LFR", "FourRates"])
def bank(request):
    keys, truth, pred = events(3000, len(KEYS), drift=1500)
    bank = fr.Bank(request.param())
    bank.update([KEYS[key] for key in keys], truth, pred)
    bank.start_period()
    bank.update([KEYS[key] for key in keys[:50]], truth[:50], pred[:50])
    return bank


def goes_on_as(bank, other):
    assert list(bank) == list(other)
    assert states(bank) == states(other)
    keys, truth, pred = events(3000, len(KEYS), seed=9, drift=0)
    keys = [KEYS[key] for key in keys]
    assert bank.update(keys, truth, pred) == other.update(keys, truth, pred)
    assert states(bank) == states(other)
    assert bank.events == other.events
    if isinstance(bank.detector, fr.FourRates):
        assert bank.discoveries(0.5) == other.discoveries(0.5)


def test_a_saved_bank_goes_on_bit_for_bit(bank, tmp_path):
    bank.save(tmp_path / "bank.state")
    loaded = fr.Bank.load(tmp_path / "bank.state")
    loaded.save(tmp_path / "again.state")
    assert (tmp_path / "again.state").read_bytes() == (tmp_path / "bank.state").read_bytes()
    goes_on_as(loaded, bank)


def test_a_pickled_bank_goes_on_bit_for_bit(bank):
    bank.update([frozenset("ab")], [1], [1])
    goes_on_as(pickle.loads(pickle.dumps(bank)), bank)


def test_a_key_no_file_can_hold_is_named_and_the_old_file_stays(tmp_path):
    bank = fr.Bank()
    bank.save(tmp_path / "bank")
    old = (tmp_path / "bank").read_bytes()
    bank.update([frozenset("a")], [1], [1])
    with pytest.raises(TypeError, match=r"not frozenset\(\{'a'\}\)"):
        bank.save(tmp_path / "bank")
    assert (tmp_path / "bank").read_bytes() == old
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_is_something_else_is_named(tmp_path, bank):
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("key,y_true,y_pred\n")
    (tmp_path / "detector").write_bytes(fr.LFR().to_bytes())
    for name in ("other.npz", "empty", "text"):
        with pytest.raises(ValueError, match=f"{name}: these bytes are not a state saved by fourrates"):
            fr.Bank.load(tmp_path / name)
    with pytest.raises(ValueError, match="detector: this is the state of LFR, not of a bank"):
        fr.Bank.load(tmp_path / "detector")
    with pytest.raises(FileNotFoundError):
        fr.Bank.load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        fr.Bank.load(tmp_path)


def test_every_cut_and_every_changed_byte_is_noticed(bank, tmp_path):
    bank.save(tmp_path / "bank")
    whole = (tmp_path / "bank").read_bytes()
    random = np.random.default_rng(8)
    for cut in [*range(1, 60), *random.integers(60, len(whole), 100).tolist()]:
        (tmp_path / "bad").write_bytes(whole[:-cut])
        with pytest.raises(ValueError, match=r"bad: (the saved state is damaged|these bytes are not a state)"):
            fr.Bank.load(tmp_path / "bad")
    for place in [*range(60), *random.integers(60, len(whole), 200).tolist(), *range(len(whole) - 60, len(whole))]:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(random.integers(8))
        (tmp_path / "bad").write_bytes(changed)
        with pytest.raises(ValueError, match=r"bad: (the saved state is damaged|these bytes are not|state of version)"):
            fr.Bank.load(tmp_path / "bad")


def test_a_file_of_a_later_release_is_named(bank, tmp_path):
    content = bytearray(bank.to_bytes()[:-4])
    content[6] += 1
    (tmp_path / "bank").write_bytes(bytes(content) + struct.pack("<I", zlib.crc32(content)))
    with pytest.raises(ValueError, match=rf"bank: state of version {VERSION + 1}; this .* {VERSION}"):
        fr.Bank.load(tmp_path / "bank")


SAVE_OFTEN = """
import sys
import fourrates as fr

bank = fr.Bank()
bank.update([int(sys.argv[2])] * 1000, [1] * 1000, [1] * 1000)
for _ in range(40):
    bank.save(sys.argv[1])
"""


@pytest.mark.slow
def test_of_two_processes_that_save_to_one_file_the_winner_is_whole(tmp_path):
    path = tmp_path / "bank"
    bank = fr.Bank()
    bank.update([0] * 1000, [1] * 1000, [1] * 1000)
    bank.save(path)
    writers = [subprocess.Popen([sys.executable, "-c", SAVE_OFTEN, str(path), key]) for key in "12"]
    while any(writer.poll() is None for writer in writers):
        assert fr.Bank.load(path).events == 1000  # whole at every moment
    assert [writer.returncode for writer in writers] == [0, 0]
    (winner,) = fr.Bank.load(path)
    assert winner in (1, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["bank"]


# Memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 0x9E3779B97F4A7C15 - 2**64])
@pytest.mark.parametrize(
    ("detector", "size"),
    [(fr.LFR, 200), (fr.FourRates, 1_560)],
    ids=["LFR", "FourRates"],
    indirect=["detector"],
)
def test_a_stream_of_two_classes_takes_little_memory(detector, size, scale):
    bank = fr.Bank(detector)
    keys = np.arange(400_000) * scale
    bank.update(keys, np.ones(keys.size, np.int8), np.ones(keys.size, np.int8))
    assert bank.nbytes / len(bank) <= size


@pytest.mark.slow
def test_memory_is_given_back():
    bank = fr.Bank()
    bank.update(np.arange(200_000), np.ones(200_000, np.int8), np.ones(200_000, np.int8))
    large = bank.nbytes
    bank.evict(np.arange(199_000))
    assert bank.nbytes < large / 5


# The global budget ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("length", [200, 5000])
def test_the_run_length_holds_for_all_streams_together(length):
    # Short streams and long ones, of different rates and balance, all stable.
    random = np.random.default_rng(41)
    streams = 4_000_000 // length
    size = streams * length
    keys = random.integers(0, streams, size)
    positive = random.uniform(0.1, 0.9, streams)[keys]
    wrong = random.uniform(0.01, 0.5, streams)[keys]
    truth = random.random(size) < positive
    pred = truth ^ (random.random(size) < wrong)
    arl = 20_000
    found = len(fr.Bank(arl=arl).update(keys, truth, pred))
    # 200 alarms at most are expected; their number is Poisson at worst, standard deviation 14.
    assert found <= size / arl + 3 * math.sqrt(size / arl)
    assert found >= size / arl / 5  # the budget is used


def stable(random, streams, length):
    keys = np.repeat(np.arange(streams), length)
    random.shuffle(keys)
    truth = random.random(keys.size) < 0.5
    return keys, truth


@pytest.mark.slow
def test_discoveries_of_a_bank_of_four_rates_name_what_drifted_however_often_they_are_asked_for():
    # Twenty repeats, ten looks each, of which the worst counts. The mean of at most q has a standard error below 0.005.
    q, streams, drifted = 0.05, 500, 20
    shares, named, false_alarms = [], [], 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        keys = np.tile(np.arange(streams), 5_000)
        truth = random.random(keys.size) < 0.3
        late = (keys < drifted) & (np.arange(keys.size) >= keys.size // 2)
        pred = truth ^ (random.random(keys.size) < np.where(late & truth, 0.4, np.where(truth, 0.2, 0.1)))
        bank, looks, alarmed = fr.Bank(arl=1_000_000), [], set()
        for part in np.array_split(np.arange(keys.size), 10):
            alarmed |= {found.key for found in bank.update(keys[part], truth[part], pred[part])}
            looks.append(bank.discoveries(q))
        shares.append(max(sum(key >= drifted for key in look) / max(len(look), 1) for look in looks))
        named.append(sum(key < drifted for key in looks[-1]))
        false_alarms += sum(key >= drifted for key in alarmed)
    assert false_alarms >= 20  # there is something to control
    assert np.mean(shares) <= q
    assert np.mean(named) >= 0.98 * drifted


@pytest.mark.slow
def test_a_drift_that_is_over_stays_a_discovery_until_the_next_period():
    random = np.random.default_rng(4)
    truth = np.ones(60_000, int)
    wrong = np.where((np.arange(60_000) >= 20_000) & (np.arange(60_000) < 40_000), 0.4, 0.1)
    pred = truth ^ (random.random(60_000) < wrong)
    bank = fr.Bank(arl=1_000_000)
    kinds = set()
    for part in np.split(np.arange(60_000), 60):
        bank.update(np.zeros(1_000, int), truth[part], pred[part])
        kinds |= {keyed.finding.kind for keyed in bank.findings}
    assert kinds == {"drift", "confirmation", "recovery"}
    assert bank.discoveries() == fr.Bank.from_bytes(bank.to_bytes()).discoveries() == [0]
    bank.start_period()
    bank.update([0], [1], [1])
    assert bank.discoveries() == []


def test_discoveries_need_a_share_and_evidence():
    with pytest.raises(ValueError, match="q 1 is not in"):
        fr.Bank().discoveries(1)
    with pytest.raises(ValueError, match="only one of FourRates"):
        fr.Bank(fr.LFR()).discoveries()


def test_an_evicted_stream_still_counts_among_those_that_were_watched():
    random = np.random.default_rng(4)
    bank, keys, truth = fr.Bank(arl=100_000), np.zeros(508, int), np.ones(508, int)
    bank.update(keys, truth, truth ^ (random.random(508) < np.where(np.arange(508) < 500, 0.05, 0.9)))  # e is 12
    assert bank.discoveries(0.5) == [0]
    others = np.arange(1, 1_000)
    bank.update(others, np.ones(others.size, int), np.ones(others.size, int))
    assert bank.discoveries(0.5) == []
    bank.evict(others)
    assert bank.discoveries(0.5) == []
    bank.start_period()
    assert len(bank) == 1


def test_evidence_names_a_stream_before_its_alarm():
    # With 20 streams of 500 events, e = evidence / 11,600: ten that are a hundredth of the way to the alarm are enough.
    random = np.random.default_rng(44)
    keys, truth = stable(random, 20, 500)
    bank = fr.Bank(arl=10_000_000)
    wrong = np.where((keys < 10) & (np.arange(keys.size) > keys.size - 220), 0.9, 0.05)
    found = bank.update(keys, truth, truth ^ (random.random(keys.size) < wrong))
    named = bank.discoveries(0.2)
    assert set(named) <= set(range(10))
    assert len(named) > len({one.key for one in found})


@pytest.mark.slow
def test_two_threads_at_once_are_refused():
    bank = fr.Bank(arl=1_000_000)
    size = 3_000_000
    keys, truth = np.zeros(size, np.int64), np.ones(size, np.uint8)
    bank.update(keys[:1], truth[:1], truth[:1])
    worker = threading.Thread(target=bank.update, args=(keys, truth, truth))
    worker.start()
    refused = 0
    while worker.is_alive():
        try:
            len(bank._arena.heads()["key"])
        except RuntimeError as error:
            refused += "another thread is using this bank" in str(error)
    worker.join()
    assert refused > 0
    assert bank.events == size + 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_process_killed_while_it_saves_leaves_a_bank_that_took_every_batch_once(benchmark, tmp_path):
    """Five kills here; benchmarks/kill.py does 200."""
    found = benchmark("kill").bank(tmp_path, kills=5, seed=1)
    assert found.wrong == []
    assert found.events >= 5 * 500


def test_a_bank_under_another_budget_goes_on_with_the_same_streams():
    random = np.random.default_rng(4)
    keys, truths = random.integers(0, 3, 3_000), random.random(3_000) < 0.3
    preds = truths ^ (random.random(3_000) < 0.1)
    bank, alone = fr.Bank(arl=1e6), fr.FourRates(arl=500)
    bank.update(keys, truths, preds)
    names, evidence, events = bank.alarm_levels()
    assert dict(zip(names, events.tolist(), strict=True)) == {key: int((keys == key).sum()) for key in names}
    own = [bank[key].evidence for key in names]
    np.testing.assert_allclose(evidence, own, rtol=1e-5)  # sums of float32 in another order
    other = bank.with_budget(500)
    np.testing.assert_allclose(other.alarm_levels()[1], evidence * (1e6 / 500), rtol=1e-5)
    assert bank.alarm_levels()[1].tolist() == evidence.tolist()
    bad = np.zeros(400, bool)
    found = other.update(np.zeros(400, int), ~bad, bad)
    alone.restore(bank[0].record_bytes)
    assert found[0].finding.at == alone.update_many(~bad, bad)[0].at
    with pytest.raises(ValueError, match="only a bank of FourRates"):
        fr.Bank(fr.LFR()).with_budget(500)


@pytest.mark.parametrize("names", [["a", 5, "b", 2**64 - 1], [("x", 1), ("x", 2), ("y", 1), ("y", 2)]])
def test_streams_under_other_keys_are_the_same_streams(names):
    keys, truth, pred = events(8000, 4, drift=4000)
    bank = fr.Bank(arl=1_000)
    bank.update(keys, truth, pred)
    renamed = bank.renamed([names[key] for key in bank])
    assert states(renamed) == {names[key]: one for key, one in states(bank).items()}
    renamed.update([names[0]], [1], [1])
    bank.update([0], [1], [1])
    assert renamed.to_bytes() == fr.Bank.from_bytes(renamed.to_bytes()).to_bytes()
    assert states(renamed)[names[0]] == states(bank)[0]
