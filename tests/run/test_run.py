"""One run, one stream or many: the same drifts as single detectors, whole or cut, and no trust in saved bytes."""

import tracemalloc
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.run import Run
from fourrates.run.trace import Trace
from fourrates.state import pack, unpack

DETECTORS = [fr.FourRates(5000, warn=100), fr.LFR(), fr.DDM()]
NAMES = [type(one).__name__ for one in DETECTORS]


def frame(size=30_000, streams=20, seed=0):
    """Some streams, of which one loses most of its true positives half way."""
    random = np.random.default_rng(seed)
    stream = random.integers(0, streams, size)
    truth = (random.random(size) < 0.3).astype(int)
    wrong = np.where((stream == 3) & (np.arange(size) > size // 2) & (truth == 1), 0.7, 0.1)
    guess = truth ^ (random.random(size) < wrong)
    return {"model": np.array([f"m{k}" for k in range(streams)])[stream], "y_true": truth, "y_pred": guess}


def taken(run, data, cuts=()):
    """What is found in the rows between cuts, the run saved and brought back at each."""
    found = []
    edges = [0, *cuts, len(data["y_true"])]
    for start, end in pairwise(edges):
        events = io.read({name: column[start:end] for name, column in data.items()}, columns=io.Columns(by="model"))
        for batch in events:
            found += run.take(batch, events.keys)
        run = Run.from_bytes(run.to_bytes())
    return run, found


def told(found):
    return [(one.stream, one.drift, one.since.event, one.before, one.after) for one in found]


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_many_streams_find_what_single_detectors_find(detector):
    data = frame()
    run, found = taken(Run(detector), data)
    assert len(run.streams) == 20
    got = {}
    for one in found:
        got.setdefault(one.stream, []).append(one.drift)
    assert "m3" in got
    for name in run.streams:
        own = data["model"] == name
        single = detector.clone()
        wanted = single.update_many(data["y_true"][own], data["y_pred"][own])
        assert got.get(name, []) == list(wanted)
        assert run.streams[name].events == own.sum()
        assert run.streams[name].warning_detected == single.warning_detected


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_the_counts_of_a_drift_add_up_to_its_confusion(detector):
    _, found = taken(Run(detector), frame(), [9_000, 18_500])
    for one in found:
        assert (np.array(one.before) + np.array(one.after) == np.array(one.drift.confusion)).all()
        assert np.sum(one.after) == one.drift.at + 1 - one.since.event


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_many_streams_cut_anywhere_give_the_same_drifts(detector):
    data = frame()
    _, whole = taken(Run(detector), data)
    random = np.random.default_rng(1)
    for _ in range(5):
        cuts = sorted(random.integers(1, 30_000, 6).tolist())
        run, found = taken(Run(detector), data, cuts)
        assert told(found) == told(whole), cuts
        assert run.events == 30_000


def courses(tprs, size=6_000, seed=3):
    """Two streams in one frame, balanced, whose tpr takes these values in turn; their tnr is 0.9."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, 2 * size * len(tprs))
    right = random.random(truth.size) < np.where(truth == 1, np.repeat(tprs, 2 * size), 0.9)
    return {"model": np.resize(["a", "b"], truth.size), "y_true": truth, "y_pred": np.where(right, truth, 1 - truth)}


@pytest.mark.parametrize(
    ("tprs", "kinds"),
    [
        ((0.8, 0.5, 0.8), ["drift", "recovery"]),
        ((0.8, 0.6, 0.4, 0.8), ["drift", "drift", "recovery"]),
        ((0.8, 0.5, 0.8, 0.5), ["drift", "recovery", "drift"]),
        ((0.8, 0.95, 0.8), ["drift", "drift"]),  # a fall is none
        ((0.8, 0.3, 0.55), ["drift", "drift"]),
    ],
)
def test_a_drift_that_leads_back_to_where_the_stream_was_is_a_recovery(tprs, kinds):
    """By the interval of the rate after it, at 90 %: one way back in twenty would be taken for a drift."""
    detector, data = fr.FourRates(1_000_000), courses(tprs)
    _, whole = taken(Run(detector), data)
    _, cut = taken(Run(detector), data, range(1_000, len(data["y_true"]), 2_500))
    assert told(cut) == told(whole)
    for name in "ab":
        own = [one for one in whole if one.stream == name]
        assert ["recovery" if one.is_recovery else "drift" for one in own] == kinds
        assert all(str(one.drift).startswith(kind) for one, kind in zip(own, kinds, strict=True))


def test_with_a_reference_it_is_the_detector_that_tells_a_recovery():
    detector = fr.FourRates(100_000, reference=[[900, 100], [200, 800]])
    data = courses((0.5, 0.8))
    found = [one.drift for one in taken(Run(detector), data)[1] if one.stream == "a"]
    own = data["model"] == "a"
    assert found == list(detector.update_many(data["y_true"][own], data["y_pred"][own]))
    assert [type(one) for one in found] == [fr.Drift, fr.Recovery]


def test_shifts_of_the_classes_are_those_of_single_detectors():
    data = frame(streams=3)
    data["y_true"][20_000:] = np.arange(10_000) % 2
    data["y_pred"][20_000:] = data["y_true"][20_000:]
    run, _ = taken(Run(fr.FourRates(5000)), data)
    events = io.read(data, columns=io.Columns(by="model"))
    run = Run(fr.FourRates(5000))
    for batch in events:
        run.take(batch, events.keys)
    for name in run.streams:
        own = data["model"] == name
        wanted = fr.FourRates(5000).update_many(data["y_true"][own], data["y_pred"][own]).shifts
        assert [one.shift for one in run.shifts if one.stream == name] == wanted
        assert wanted
    for one in run.shifts:
        assert data["model"][one.at.row - 1] == one.stream
        assert np.flatnonzero(data["model"] == one.stream)[one.shift.at] == one.at.row - 1


def test_traces_of_many_streams_are_those_of_single_ones():
    data = frame()
    run = Run(fr.LFR(), Trace)
    events = io.read(data, columns=io.Columns(by="model"))
    for batch in events:
        run.take(batch, events.keys)
    own = data["model"] == "m3"
    single = Run(fr.LFR(), Trace)
    for batch in io.read((data["y_true"][own], data["y_pred"][own].astype(int))):
        single.take(batch)
    for one, other in zip(run.traces["m3"].curves(), single.traces[None].curves(), strict=True):
        assert one.value.tolist() == other.value.tolist()
        assert one.events.tolist() == other.events.tolist()


def test_a_run_is_of_one_stream_or_of_many():
    run, _ = taken(Run(fr.LFR()), frame(1000))
    (batch,) = io.read(([0, 1], [0, 1]))
    with pytest.raises(io.InputError, match="told apart by a column"):
        run.take(batch)


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_damaged_bytes_are_refused(detector):
    saved = taken(Run(detector), frame(3000))[0].to_bytes()
    random = np.random.default_rng(4)
    for at in random.integers(0, len(saved), 200).tolist():
        damaged = bytearray(saved)
        damaged[at] ^= 1 << int(random.integers(8))
        with pytest.raises(io.InputError):
            Run.from_bytes(bytes(damaged))
    for end in random.integers(0, len(saved), 50).tolist():
        with pytest.raises(io.InputError):
            Run.from_bytes(saved[:end])


@cache
def saved_run(number):
    """A run that is saved while some streams warn."""
    return taken(Run(DETECTORS[number]), frame())[0].to_bytes()


WRONG = [
    {"detector": "Detector"},
    {"detector": "os"},
    {"detector": 3},
    {"events": -1},
    {"events": 1.5},
    {"events": 10**30},
    {"streams": None},
    {"streams": ["m1"] * 20},
    {"streams": [None, "a"]},
    {"streams": ["a"]},
    {"streams": [["a"]] * 20},
    {"warnings": None},
    {"warnings": []},
    {"warnings": [[0]]},
    {"warnings": [[99, 0, "x", 1, None, [[0, 0], [0, 0]]]]},
    {"warnings": [[-1, 0, "x", 1, None, [[0, 0], [0, 0]]]]},
    {"warnings": [[0, 0, "x", 1, None, [[-5, 10**30], [0, 0]]]]},
    {"warnings": [[0, 0, "x", 1, None, "many"]]},
    {"away": None},
    {"away": [[0, {}]]},
    {"away": [[99, {"tpr": [0.9, 0.5]}]]},
    {"away": [[0, {"tpr": [0.9, 0.5]}], [0, {"tpr": [0.9, 0.5]}]]},
    {"away": [[0, {"tpr": [0.9, 1.5]}]]},
    {"away": [[0, {"tpr": [0.9]}]]},
    {"away": [[0, {"tpr": ["much", 0.5]}]]},
    {"away": [[0, {"tpr": [None, 0.5]}]]},
    {"sizes": [3]},
    {"sizes": None},
]


@pytest.mark.parametrize("wrong", WRONG, ids=map(str, WRONG))
@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_forged_bytes_are_refused_and_nothing_else(detector, wrong):
    """With a checksum that fits: every value is checked against its range and the others."""
    found = unpack(saved_run(DETECTORS.index(detector)))
    assert found.about["warnings"]
    if "sizes" in wrong and "bank" in found.sections:
        pytest.skip("a bank has no sizes")
    forged = pack("Run", {**found.about, **wrong}, **found.sections)
    with pytest.raises(io.InputError):
        Run.from_bytes(forged)


def test_sections_that_do_not_belong_together_are_refused():
    lfr, four = (unpack(taken(Run(one), frame(3000))[0].to_bytes()) for one in DETECTORS[1::-1])
    for about, sections in (
        (lfr.about, {**lfr.sections, "bank": four.sections["bank"]}),
        (lfr.about, {**lfr.sections, "start": four.sections["start"]}),
        (lfr.about, {"bank": lfr.sections["bank"]}),
        (lfr.about, {"start": lfr.sections["start"]}),
        (lfr.about, {**lfr.sections, "bank": b"nothing"}),
    ):
        with pytest.raises(io.InputError):
            Run.from_bytes(pack("Run", about, **sections))
    with pytest.raises(io.InputError, match="not of a run"):
        Run.from_bytes(fr.LFR().to_bytes())


@pytest.mark.slow
def test_a_key_takes_little_more_than_its_record():
    streams = 20_000
    keys = np.arange(3 * streams) % streams
    random = np.random.default_rng(0)
    truth, guess = random.integers(0, 2, (2, keys.size)).astype(np.uint16)
    names = [f"customer-{k}" for k in range(streams)]
    batch = io.Batch(truth, guess, "x", np.arange(keys.size), None, keys)
    tracemalloc.start()
    run = Run(fr.FourRates())
    run.take(batch, names)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size / streams < fr.FourRates().rules.size + 1200
