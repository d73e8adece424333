"""One run, one stream or many: the same findings as single detectors, whole or cut, and no trust in saved bytes."""

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
    return [(one.stream, one.finding, one.since.event, one.before, one.after) for one in found]


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_many_streams_find_what_single_detectors_find(detector):
    data = frame()
    run, found = taken(Run(detector), data)
    assert len(run.streams) == 20
    got = {}
    for one in found:
        got.setdefault(one.stream, []).append(one.finding)
    assert "m3" in got
    for name in run.streams:
        own = data["model"] == name
        single = detector.clone()
        single.update_many(data["y_true"][own], data["y_pred"][own])
        assert got.get(name, []) == [one for one in single.findings if one.kind != "shift"]
        assert run.streams[name].events == own.sum()
        assert run.streams[name].warning_detected == single.warning_detected


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_the_counts_of_a_drift_add_up_to_its_confusion(detector):
    _, found = taken(Run(detector), frame(), [9_000, 18_500])
    for one in found:
        if one.is_drift:
            assert (np.array(one.before) + np.array(one.after) == np.array(one.finding.confusion)).all()
            assert np.sum(one.after) == one.finding.at + 1 - one.since.event
        else:
            assert (one.since, one.before, one.after) == (one.at, (), ())


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_many_streams_cut_anywhere_give_the_same_findings(detector):
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


DRIFT = ["drift", "confirmation"]


@pytest.mark.parametrize(
    ("tprs", "kinds"),
    [
        ((0.8, 0.5, 0.8), [*DRIFT, "recovery"]),
        ((0.8, 0.6, 0.4, 0.8), [*DRIFT, *DRIFT, "recovery"]),
        ((0.8, 0.5, 0.8, 0.5), [*DRIFT, "recovery", *DRIFT]),
        ((0.8, 0.95, 0.8), [*DRIFT, "recovery"]),  # from a rise too
        ((0.8, 0.3, 0.55), [*DRIFT, "improvement"]),
    ],
)
def test_a_drift_is_confirmed_and_ends_when_the_rate_is_back_whole_or_cut(tprs, kinds):
    detector, data = fr.FourRates(1_000_000), courses(tprs)
    _, whole = taken(Run(detector), data)
    run, cut = taken(Run(detector), data, range(1_000, len(data["y_true"]), 2_500))
    assert told(cut) == told(whole)
    for name in "ab":
        own = [one for one in whole if one.stream == name]
        assert [one.kind for one in own] == kinds
        assert [one.finding.closes for one in own] == [kind == "recovery" for kind in kinds]
        assert run.streams[name].status == ("stable" if kinds[-1] == "recovery" else "drifted")


def test_with_a_reference_of_its_own_a_stream_drifts_from_it_and_recovers():
    reference, data = [[900, 100], [200, 800]], courses((0.5, 0.8))
    detector = fr.FourRates(1_000_000)
    run, found = taken(Run(detector, references={"a": reference}), data)
    own = data["model"] == "a"
    single = fr.FourRates(1_000_000, reference=reference)
    single.update_many(data["y_true"][own], data["y_pred"][own])
    assert [one.finding for one in found if one.stream == "a"] == list(single.findings)
    assert [one.kind for one in found if one.stream == "a"] == [*DRIFT, "recovery"]
    assert [one.finding.changes[0].direction for one in found if one.stream == "b" and one.is_drift] == ["up"]
    assert run.unreferred == ["b"]


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
        single = fr.FourRates(5000)
        single.update_many(data["y_true"][own], data["y_pred"][own])
        wanted = [one for one in single.findings if one.kind == "shift"]
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
