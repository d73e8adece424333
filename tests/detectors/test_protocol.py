"""What every detector promises, whatever it watches: one suite that all of them pass."""

import copy
import math
import pickle
import re
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fourrates as fr
from fourrates.baselines import DETECTORS
from fourrates.detectors import Detector


class Case(NamedTuple):
    """A detector, with parameters that make a short stream hold warnings and several drifts."""

    kind: type[Detector]
    parameters: dict[str, object]
    reference: bool = False  # whether it is given the counts of a validation set
    remembers: bool = False  # whether it knows something of the stream after a drift


CASES = {
    "LFR": Case(fr.LFR, {"warn": 0.1, "detect": 0.01}),
    "NFR": Case(fr.baselines.NFR, {"warn": 0.2, "detect": 0.02, "minimum": 5}),
    "DDM": Case(fr.baselines.DDM, {"warn": 1.0, "detect": 1.5, "minimum": 5}),
    "DDMOCI": Case(fr.baselines.DDMOCI, {"warn": 1.0, "detect": 2.0, "minimum": 5}),
    "EDDM": Case(fr.baselines.EDDM, {"minimum": 5}),
    "PerfSim": Case(fr.baselines.PerfSim, {"warn": 0.97, "detect": 0.9, "batch": 7}),
    "ThreeMeasures": Case(fr.baselines.ThreeMeasures, {"warn": 2.0, "detect": 4.0, "batch": 7, "history": 3}),
    "FourRates that restarts": Case(fr.FourRates, {"arl": 200.0, "warn": 10.0, "after": "restart"}, remembers=True),
    "FourRates of independent events": Case(
        fr.FourRates, {"arl": 200.0, "dispersion": 1.0, "mix": "ignore", "after": "restart"}
    ),
    "FourRates with a reference": Case(fr.FourRates, {"arl": 200.0}, reference=True, remembers=True),
    "FourRates with a reference for the first concept": Case(
        fr.FourRates, {"arl": 200.0, "after": "restart"}, reference=True, remembers=True
    ),
    "FourRates and an alarming mix": Case(
        fr.FourRates, {"arl": 200.0, "mix": "alarm", "after": "restart"}, remembers=True
    ),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_kind = pytest.mark.parametrize(
    "kind", dict.fromkeys(case.kind for case in CASES.values()), ids=lambda k: k.__name__
)


def make(case, **more):
    if case.reference:
        labels = more.get("labels", (0, 1))
        classes = len(labels) if hasattr(labels, "__len__") else 2
        more["reference"] = np.full((classes, classes), 10) + np.eye(classes) * 90 * (classes - 1)
    return case.kind(**case.parameters, **more)


def restless(size, classes=2, seed=0):
    """A stream whose concept changes every 150 events."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, size)
    right = random.random(size) < np.where(np.arange(size) // 150 % 2, 0.45, 0.9)
    return truth, np.where(right, truth, (truth + random.integers(1, classes, size)) % classes)


def one_at_a_time(detector, truth, pred):
    drifts, flags = [], []
    for pair in zip(truth.tolist(), pred.tolist(), strict=True):
        drift = detector.update(*pair)
        assert detector.drift_detected == (drift is not None)
        assert not (detector.drift_detected and detector.warning_detected)
        flags.append((detector.drift_detected, detector.warning_detected))
        if drift is not None:
            drifts.append(drift)
    return drifts, flags


def test_the_suite_knows_every_public_detector():
    assert {*DETECTORS.values()} == {case.kind for case in CASES.values()}


# ---------------------------------------------------------------------------------------------- batches


@pytest.mark.slow
@every
@given(data=st.data(), classes=st.integers(2, 4), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_a_batch_equals_one_at_a_time_over_any_split(case, data, classes, seed):
    truth, pred = restless(600, classes, seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, 600), max_size=8)))
    single, whole, split = (make(case, labels=range(classes)) for _ in range(3))
    expected, flags = one_at_a_time(single, truth, pred)
    assert list(whole.update_many(truth, pred)) == expected
    found = []
    for start, end in zip([0, *cuts], [*cuts, 600], strict=True):
        found += split.update_many(truth[start:end], pred[start:end])
        if end > 0:
            assert (split.drift_detected, split.warning_detected) == flags[end - 1]
    assert found == expected
    assert single.to_bytes() == whole.to_bytes() == split.to_bytes()


@pytest.mark.slow
@every
def test_the_streams_of_this_suite_hold_warnings_and_drifts(case):
    drifts, flags = one_at_a_time(make(case), *restless(3000))
    assert len(drifts) > 1
    assert (False, True) in flags


@every
def test_a_drift_says_where_since_when_what_and_which_way(case):
    truth, pred = restless(3000)
    detector = make(case)
    last = -1
    for drift in detector.update_many(truth, pred):
        assert last < drift.since <= drift.at < 3000
        if case.kind is fr.FourRates:
            assert last < drift.started_between[0] <= drift.started <= drift.started_between[1] <= drift.at
            assert drift.window == range(drift.started, drift.at + 1)
        else:
            assert drift.started is None
            assert drift.window == range(drift.since, drift.at + 1)
        counted = np.zeros((2, 2), int)
        np.add.at(counted, (truth[last + 1 : drift.at + 1], pred[last + 1 : drift.at + 1]), 1)
        if detector.parameters.get("after") != "hold":  # where an alarm that is no drift begins the counts again, too
            assert drift.confusion == tuple(map(tuple, counted))
        assert len(drift.changes) > 0
        for change in drift.changes:
            assert change.rate in detector.rates
            assert change.n > 0
            assert math.isfinite(change.statistic)
            if case.kind is fr.FourRates:
                assert change.statistic > 0
                assert (change.after.value < change.before.value) == (change.direction == "down")
            else:
                assert (change.statistic < change.bound) == (change.direction == "down")
            assert change.rate in str(drift)
        last = drift.at
    assert detector.events == 3000


@every
def test_since_is_where_the_unbroken_warning_began(case):
    detector = make(case)
    truth, pred = restless(3000)
    drifts, flags = one_at_a_time(detector, truth, pred)
    for drift in drifts:
        if drift.about is not None:  # while a drift is open there are no warnings
            continue
        start = drift.at
        while start > 0 and flags[start - 1] == (False, True):
            start -= 1
        # The methods that judge whole batches raise a flag at a batch's end, and mean the batch.
        assert drift.since == start - case.parameters.get("batch", 1) + 1


@every
def test_first_only_stops_after_the_first_drift(case):
    truth, pred = restless(3000)
    all_of_them = make(case).update_many(truth, pred)
    assert all_of_them.consumed == 3000
    detector = make(case)
    found, start = [], 0
    while start < 3000:
        drifts = detector.update_many(truth[start:], pred[start:], first_only=True)
        assert len(drifts) <= 1
        assert detector.drift_detected == (len(drifts) == 1)
        start += drifts.consumed
        assert detector.events == start
        if drifts:
            assert drifts[0].at == start - 1
        found += drifts
    assert found == all_of_them


@every
def test_an_empty_batch_changes_nothing(case):
    detector = make(case)
    detector.update_many(*restless(200))
    before = detector.to_bytes()
    for empty in ([], np.array([]), np.empty(0, np.int64), ()):
        drifts = detector.update_many(empty, empty)
        assert drifts == []
        assert drifts.consumed == 0
    assert detector.to_bytes() == before


@every
@pytest.mark.parametrize("pair", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_one_event_of_any_kind_is_no_drift(case, pair):
    detector = make(case)
    assert detector.update(*pair) is None
    assert detector.events == 1
    assert not detector.drift_detected
    assert not detector.warning_detected
    assert all(state.n <= 1 for state in detector.rates.values())


@every
@pytest.mark.parametrize("right", [0, 1])
def test_a_stream_of_one_kind_never_alarms(case, right):
    if case.reference:
        pytest.skip("it is not what the reference says")
    for truth in (0, 1):
        pred = truth if right else 1 - truth
        detector = make(case)
        assert detector.update_many([truth] * 5000, [pred] * 5000) == []
        assert not detector.warning_detected


# ---------------------------------------------------------------------------------------------- state


@every
@pytest.mark.parametrize("how", ["pickle", "bytes", "copy", "deepcopy"])
@given(cut=st.integers(0, 600), seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 3))
@settings(max_examples=10, deadline=None)
def test_state_saved_in_mid_stream_continues_bit_for_bit(case, how, cut, seed, classes):
    saved = {
        "pickle": lambda detector: pickle.loads(pickle.dumps(detector)),
        "bytes": lambda detector: case.kind.from_bytes(detector.to_bytes()),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }[how]
    truth, pred = restless(600, classes, seed)
    detector = make(case, labels=range(classes))
    detector.update_many(truth[:cut], pred[:cut])
    revived = saved(detector)
    assert type(revived) is case.kind
    assert revived.parameters == detector.parameters
    assert revived.to_bytes() == detector.to_bytes()
    assert (revived.drift_detected, revived.warning_detected) == (detector.drift_detected, detector.warning_detected)
    assert detector.update_many(truth[cut:], pred[cut:]) == revived.update_many(truth[cut:], pred[cut:])
    assert revived.to_bytes() == detector.to_bytes()


@every
def test_a_clone_is_fresh_and_independent(case):
    detector = make(case, labels=("ham", "spam"))
    truth, pred = (np.take(("ham", "spam"), codes) for codes in restless(500))
    detector.update_many(truth, pred)
    before = detector.to_bytes()
    clone = detector.clone()
    assert type(clone) is case.kind
    assert clone.parameters == detector.parameters
    assert clone.to_bytes() == make(case, labels=("ham", "spam")).to_bytes()
    clone.update_many(truth, pred)
    clone.parameters["labels"].append("egg")
    assert detector.to_bytes() == before


@every
def test_reset_forgets_everything(case):
    detector = make(case)
    fresh = detector.to_bytes()
    expected = detector.update_many(*restless(2000))
    assert detector.to_bytes() != fresh
    detector.reset()
    assert detector.to_bytes() == fresh
    assert detector.events == 0
    assert not detector.drift_detected
    assert detector.update_many(*restless(2000)) == expected


@every
def test_a_drift_leaves_what_a_fresh_detector_has_but_for_the_count(case):
    if case.remembers:
        pytest.skip("it knows the dispersion, or its reference, after a drift")
    truth, pred = restless(3000)
    detector = make(case)
    drifts = detector.update_many(truth, pred, first_only=True)
    assert drifts
    fresh = make(case)
    # NaN differs from itself, but not from its own representation.
    assert repr(dict(detector.rates)) == repr(dict(fresh.rates))
    shift = drifts.consumed
    later = detector.update_many(truth[shift:], pred[shift:])
    anew = fresh.update_many(truth[shift:], pred[shift:])
    assert later == [drift.shifted(shift) for drift in anew]


@pytest.mark.slow
@every
def test_the_state_does_not_grow_with_the_stream(case):
    detector = make(case)
    sizes = []
    for seed in range(20):
        detector.update_many(*restless(5000, seed=seed))
        sizes.append(len(detector.to_bytes()))
    assert detector.events == 100_000
    assert set(sizes) == {len(make(case).to_bytes())}


@every
def test_the_representation_makes_the_same_detector(case):
    detector = make(case, labels=("ham", "spam"), positive="ham")
    again = eval(repr(detector), {case.kind.__name__: case.kind})
    assert again.to_bytes() == detector.to_bytes()


@every
def test_damaged_bytes_are_refused(case):
    detector = make(case)
    detector.update_many(*restless(300))
    saved = detector.to_bytes()
    for position in range(0, len(saved), 7):
        damaged = bytearray(saved)
        damaged[position] ^= 0x10
        with pytest.raises(ValueError, match=r"not a state|version|damaged|state of"):
            case.kind.from_bytes(bytes(damaged))
    for size in range(0, len(saved), 5):
        with pytest.raises(ValueError, match=r"not a state|damaged"):
            case.kind.from_bytes(saved[:size])
    with pytest.raises(ValueError, match="damaged"):
        case.kind.from_bytes(saved + b"\0")


@every_kind
def test_the_bytes_of_another_detector_are_refused(kind):
    for case in CASES.values():
        if case.kind is not kind:
            with pytest.raises(ValueError, match=f"this is the state of {case.kind.__name__}, not of {kind.__name__}"):
                kind.from_bytes(make(case).to_bytes())


@every
def test_labels_that_bytes_cannot_keep_are_told_so_and_pickle_keeps_them(case):
    detector = make(case, labels=((0, "a"), (1, "b"), frozenset({2})))
    detector.update((0, "a"), frozenset({2}))
    with pytest.raises(TypeError, match="pickle does"):
        detector.to_bytes()
    revived = pickle.loads(pickle.dumps(detector))
    assert revived.events == 1
    assert repr(dict(revived.rates)) == repr(dict(detector.rates))


# ---------------------------------------------------------------------------------------------- labels and bad input


@every
@pytest.mark.parametrize(
    "convention",
    [
        lambda codes: codes.astype(bool),
        lambda codes: codes.astype(np.uint8),
        lambda codes: codes.astype(np.int64),
        lambda codes: codes.astype(float),
        lambda codes: codes.astype(">i4"),
        lambda codes: codes.tolist(),
        lambda codes: tuple(map(bool, codes)),
        lambda codes: codes.astype(object),
        lambda codes: np.repeat(codes, 2)[::2],
    ],
    ids=["bool", "uint8", "int64", "float", "big-endian", "list", "tuple of bools", "objects", "strided"],
)
def test_anything_equal_to_a_label_is_that_label(case, convention):
    truth, pred = restless(600)
    plain, other = make(case), make(case)
    assert plain.update_many(truth, pred) == other.update_many(convention(truth), convention(pred))
    assert plain.to_bytes() == other.to_bytes()


@every
@pytest.mark.parametrize("one", [int, bool, float, np.int8, np.uint64, np.float32, np.bool_])
def test_one_event_may_come_in_any_number_type(case, one):
    plain, other = make(case), make(case)
    for truth, pred in zip(*(codes.tolist() for codes in restless(300)), strict=True):
        assert plain.update(truth, pred) == other.update(one(truth), one(pred))
    assert plain.to_bytes() == other.to_bytes()


@every
@pytest.mark.parametrize("labels", [("ham", "spam"), (-1, 1), (False, True), (b"n", b"y"), (1.5, 2.5)])
def test_named_labels_give_what_their_codes_give(case, labels):
    truth, pred = restless(600)
    plain, named = make(case), make(case, labels=labels)
    array = np.array(labels)
    expected = plain.update_many(truth, pred)
    assert named.update_many(array[truth], array[pred]) == expected
    single = make(case, labels=labels)
    found = [single.update(labels[t], labels[g]) for t, g in zip(truth, pred, strict=True)]
    assert [drift for drift in found if drift] == expected


@every
def test_minus_one_is_refused_unless_it_is_named(case):
    with pytest.raises(ValueError, match=r"-1 in column 'y_true' is not one of the labels 0, 1"):
        make(case).update(-1, 1)
    with pytest.raises(ValueError, match=r"position 2: -1 in column 'y_pred' is not one of the labels 0, 1"):
        make(case).update_many([0, 1, 1], [0, 1, -1])
    make(case, labels=(-1, 1)).update(-1, 1)


@every
def test_naming_the_positive_label_is_the_same_as_putting_it_second(case):
    truth, pred = (np.take(("bad", "good"), codes) for codes in restless(600))
    named = make(case, labels=("bad", "good"), positive="bad").update_many(truth, pred)
    second = make(case, labels=("good", "bad")).update_many(truth, pred)
    assert named == second


@every
@pytest.mark.parametrize("bad", [2, -1, 0.5, math.nan, None, "one", b"1", [1], {}, ...], ids=repr)
def test_a_bad_label_is_named_and_leaves_the_state_untouched(case, bad):
    detector = make(case)
    detector.update_many(*restless(400))
    before = detector.to_bytes()
    for pair, name in (((bad, 1), "y_true"), ((1, bad), "y_pred"), ((bad, bad), "y_true")):
        with pytest.raises((ValueError, TypeError), match=name):
            detector.update(*pair)
    assert detector.to_bytes() == before


@every
@pytest.mark.parametrize(
    ("truth", "pred", "message"),
    [
        ([0, 1, 2], [0, 1, 1], "position 2: 2 in column 'y_true' is not one of"),
        ([0, 1, 1], [0, 7, 1], "position 1: 7 in column 'y_pred' is not one of"),
        ([0.0, math.nan], [0, 1], "position 1: nan in column 'y_true' is not one of"),
        ([0, None], [0, 1], "position 1: None in column 'y_true' is not one of"),
        (["no", "1"], [0, 1], "position 0: 'no' in column 'y_true' is not one of"),
        ([0.5, 1], [0, 1], "position 0: 0.5 in column 'y_true' is not one of"),
        ([0, 1, 0], [0, 1], "y_true has 3 events, y_pred has 2"),
        ([], [1], "y_true has 0 events, y_pred has 1"),
        (np.array([[0, 1], [1, 0]]), [0, 1], "y_true has 2 dimensions, not one"),
        ([0, 1], np.array([[0, 1]]), "y_pred has 2 dimensions, not one"),
        ([[0, 1], [1, 0]], [0, 1], r"position 0: \[0, 1\] in column 'y_true' is not one of"),
        (1, 1, "y_true has 0 dimensions, not one"),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_the_state_untouched(case, truth, pred, message):
    detector = make(case)
    detector.update_many(*restless(400))
    before = detector.to_bytes()
    with pytest.raises(ValueError, match=message):
        detector.update_many(truth, pred)
    assert detector.to_bytes() == before


@every
def test_one_bad_label_at_the_end_of_a_long_batch_takes_none_of_it(case):
    detector = make(case)
    truth, pred = restless(5000)
    before = detector.to_bytes()
    with pytest.raises(ValueError, match="position 5000"):
        detector.update_many([*truth, 3], [*pred, 1])
    assert detector.to_bytes() == before
    assert detector.events == 0


@every
@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ("ab", TypeError, "several labels in an order, such as a list, not 'ab'"),
        ([1], ValueError, "1 labels; at least two"),
        ([1, 1.0], ValueError, "label 1.0 at position 1 of labels is there twice"),
        ([0, None], ValueError, "None at position 1 of labels cannot be a label"),
        ([0, math.nan], ValueError, "nan at position 1 of labels cannot be a label"),
    ],
)
def test_labels_that_cannot_be_told_apart_are_refused(case, labels, error, message):
    with pytest.raises(error, match=message):
        make(case, labels=labels)


@every
@pytest.mark.parametrize("value", ["often", [0.1], 1j])
def test_a_number_that_is_none_is_refused(case, value):
    for name in ("warn", "arl" if case.kind is fr.FourRates else "detect"):
        with pytest.raises((TypeError, ValueError), match=re.escape(f"{name} {value!r} is not a number")):
            case.kind(**{**case.parameters, name: value})


@every
def test_parameters_may_be_numpy_scalars(case):
    scalars = {name: np.array(value)[()] for name, value in case.parameters.items()}
    assert make(case._replace(parameters=scalars)).to_bytes() == make(case).to_bytes()


@every
def test_numpy_labels_are_kept_as_what_they_stand_for(case):
    detector = make(case, labels=np.array([3, 7]), positive=np.int64(3))
    assert detector.parameters["labels"] == [3, 7]
    detector.update(3, 7)
    assert case.kind.from_bytes(detector.to_bytes()).events == 1


@every
def test_labels_may_come_from_an_iterator_once(case):
    detector = make(case, labels=iter(("ham", "spam")))
    detector.update("ham", "spam")
    assert detector.clone().parameters["labels"] == ["ham", "spam"]
