"""What every detector promises, whatever it watches: one suite that all of them pass."""

import copy
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fourrates as fr
from fourrates.detectors import Detector

# Each with parameters that make a short stream hold warnings and several drifts.
DETECTORS = {
    fr.LFR: {"warn": 0.1, "detect": 0.01},
    fr.NFR: {"warn": 0.2, "detect": 0.02, "minimum": 5},
    fr.DDM: {"warn": 1.0, "detect": 1.5, "minimum": 5},
    fr.DDMOCI: {"warn": 1.0, "detect": 2.0, "minimum": 5},
    fr.EDDM: {"minimum": 5},
    fr.PerfSim: {"warn": 0.97, "detect": 0.9, "batch": 7},
    fr.ThreeMeasures: {"warn": 2.0, "detect": 4.0, "batch": 7, "history": 3},
}
every = pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)


def make(kind, **more):
    return kind(**DETECTORS[kind], **more)


def restless(size, classes=2, seed=0):
    """A stream whose concept changes every 150 events."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, size)
    right = random.random(size) < np.where(np.arange(size) // 150 % 2, 0.45, 0.9)
    return truth, np.where(right, truth, (truth + random.integers(1, classes, size)) % classes)


def one_at_a_time(detector, truth, guess):
    drifts, flags = [], []
    for pair in zip(truth.tolist(), guess.tolist(), strict=True):
        drift = detector.update(*pair)
        assert detector.drift_detected == (drift is not None)
        assert not (detector.drift_detected and detector.warning_detected)
        flags.append((detector.drift_detected, detector.warning_detected))
        if drift is not None:
            drifts.append(drift)
    return drifts, flags


def test_the_suite_knows_every_public_detector():
    public = {getattr(fr, name) for name in fr.__all__}
    assert {kind for kind in public if isinstance(kind, type) and issubclass(kind, Detector)} == set(DETECTORS)


# ---------------------------------------------------------------------------------------------- batches


@every
@given(data=st.data(), classes=st.integers(2, 4), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_a_batch_equals_one_at_a_time_over_any_split(kind, data, classes, seed):
    truth, guess = restless(600, classes, seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, 600), max_size=8)))
    single, whole, split = (make(kind, labels=range(classes)) for _ in range(3))
    expected, flags = one_at_a_time(single, truth, guess)
    assert list(whole.update_many(truth, guess)) == expected
    found = []
    for start, end in zip([0, *cuts], [*cuts, 600], strict=True):
        found += split.update_many(truth[start:end], guess[start:end])
        if end > 0:
            assert (split.drift_detected, split.warning_detected) == flags[end - 1]
    assert found == expected
    assert single.to_bytes() == whole.to_bytes() == split.to_bytes()


@every
def test_the_streams_of_this_suite_hold_warnings_and_drifts(kind):
    drifts, flags = one_at_a_time(make(kind), *restless(3000))
    assert len(drifts) > 1
    assert (False, True) in flags


@every
def test_a_drift_says_where_since_when_what_and_which_way(kind):
    truth, guess = restless(3000)
    detector = make(kind)
    last = -1
    for drift in detector.update_many(truth, guess):
        assert last < drift.since <= drift.at < 3000
        assert drift.window == range(drift.since, drift.at + 1)
        counted = np.zeros((2, 2), int)
        np.add.at(counted, (truth[last + 1 : drift.at + 1], guess[last + 1 : drift.at + 1]), 1)
        assert drift.confusion == tuple(map(tuple, counted))
        assert len(drift.changes) > 0
        for change in drift.changes:
            assert change.rate in detector.rates
            assert change.n > 0
            assert math.isfinite(change.statistic)
            assert (change.statistic < change.bound) == (change.direction == "down")
            assert change.rate in str(drift)
        last = drift.at
    assert detector.events == 3000


@every
def test_since_is_where_the_unbroken_warning_began(kind):
    detector = make(kind)
    truth, guess = restless(3000)
    drifts, flags = one_at_a_time(detector, truth, guess)
    for drift in drifts:
        start = drift.at
        while start > 0 and flags[start - 1] == (False, True):
            start -= 1
        # The methods that judge whole batches raise a flag at a batch's end, and mean the batch.
        assert drift.since == start - DETECTORS[kind].get("batch", 1) + 1


@every
def test_first_only_stops_after_the_first_drift(kind):
    truth, guess = restless(3000)
    all_of_them = make(kind).update_many(truth, guess)
    assert all_of_them.consumed == 3000
    detector = make(kind)
    found, start = [], 0
    while start < 3000:
        drifts = detector.update_many(truth[start:], guess[start:], first_only=True)
        assert len(drifts) <= 1
        assert detector.drift_detected == (len(drifts) == 1)
        start += drifts.consumed
        assert detector.events == start
        if drifts:
            assert drifts[0].at == start - 1
        found += drifts
    assert found == all_of_them


@every
def test_an_empty_batch_changes_nothing(kind):
    detector = make(kind)
    detector.update_many(*restless(200))
    before = detector.to_bytes()
    for empty in ([], np.array([]), np.empty(0, np.int64), ()):
        drifts = detector.update_many(empty, empty)
        assert drifts == []
        assert drifts.consumed == 0
    assert detector.to_bytes() == before


@every
@pytest.mark.parametrize("pair", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_one_event_of_any_kind_is_no_drift(kind, pair):
    detector = make(kind)
    assert detector.update(*pair) is None
    assert detector.events == 1
    assert not detector.drift_detected
    assert not detector.warning_detected
    assert all(state.n <= 1 for state in detector.rates.values())


@every
@pytest.mark.parametrize("right", [0, 1])
def test_a_stream_of_one_kind_never_alarms(kind, right):
    for truth in (0, 1):
        guess = truth if right else 1 - truth
        detector = make(kind)
        assert detector.update_many([truth] * 5000, [guess] * 5000) == []
        assert not detector.warning_detected


# ---------------------------------------------------------------------------------------------- state


@every
@pytest.mark.parametrize("how", ["pickle", "bytes", "copy", "deepcopy"])
@given(cut=st.integers(0, 600), seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 3))
@settings(max_examples=10, deadline=None)
def test_state_saved_in_mid_stream_continues_bit_for_bit(kind, how, cut, seed, classes):
    saved = {
        "pickle": lambda detector: pickle.loads(pickle.dumps(detector)),
        "bytes": lambda detector: kind.from_bytes(detector.to_bytes()),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }[how]
    truth, guess = restless(600, classes, seed)
    detector = make(kind, labels=range(classes))
    detector.update_many(truth[:cut], guess[:cut])
    revived = saved(detector)
    assert type(revived) is kind
    assert revived.parameters == detector.parameters
    assert revived.to_bytes() == detector.to_bytes()
    assert (revived.drift_detected, revived.warning_detected) == (detector.drift_detected, detector.warning_detected)
    assert detector.update_many(truth[cut:], guess[cut:]) == revived.update_many(truth[cut:], guess[cut:])
    assert revived.to_bytes() == detector.to_bytes()


@every
def test_a_clone_is_fresh_and_independent(kind):
    detector = make(kind, labels=("ham", "spam"))
    truth, guess = (np.take(("ham", "spam"), codes) for codes in restless(500))
    detector.update_many(truth, guess)
    before = detector.to_bytes()
    clone = detector.clone()
    assert type(clone) is kind
    assert clone.parameters == detector.parameters
    assert clone.to_bytes() == make(kind, labels=("ham", "spam")).to_bytes()
    clone.update_many(truth, guess)
    clone.parameters["labels"].append("egg")
    assert detector.to_bytes() == before


@every
def test_reset_forgets_everything(kind):
    detector = make(kind)
    fresh = detector.to_bytes()
    expected = detector.update_many(*restless(2000))
    assert detector.to_bytes() != fresh
    detector.reset()
    assert detector.to_bytes() == fresh
    assert detector.events == 0
    assert not detector.drift_detected
    assert detector.update_many(*restless(2000)) == expected


@every
def test_a_drift_leaves_what_a_fresh_detector_has_but_for_the_count(kind):
    truth, guess = restless(3000)
    detector = make(kind)
    drifts = detector.update_many(truth, guess, first_only=True)
    assert drifts
    fresh = make(kind)
    # NaN differs from itself, but not from its own representation.
    assert repr(dict(detector.rates)) == repr(dict(fresh.rates))
    shift = drifts.consumed
    later = detector.update_many(truth[shift:], guess[shift:])
    anew = fresh.update_many(truth[shift:], guess[shift:])
    assert [(drift.at - shift, drift.since - shift, drift.changes) for drift in later] == [
        (drift.at, drift.since, drift.changes) for drift in anew
    ]


@every
def test_the_state_does_not_grow_with_the_stream(kind):
    detector = make(kind)
    sizes = []
    for seed in range(20):
        detector.update_many(*restless(5000, seed=seed))
        sizes.append(len(detector.to_bytes()))
    assert detector.events == 100_000
    if kind is fr.LFR:  # what it remembers of the past is packed: not always equally small, but never growing
        assert max(sizes[10:]) <= 1.2 * max(sizes[:10]) < 4_000
    else:
        assert set(sizes) == {len(make(kind).to_bytes())}


@every
def test_the_representation_makes_the_same_detector(kind):
    detector = make(kind, labels=("ham", "spam"), positive="ham")
    again = eval(repr(detector), {kind.__name__: kind})
    assert again.to_bytes() == detector.to_bytes()


@every
def test_damaged_bytes_are_refused(kind):
    detector = make(kind)
    detector.update_many(*restless(300))
    saved = detector.to_bytes()
    for position in range(0, len(saved), 7):
        damaged = bytearray(saved)
        damaged[position] ^= 0x10
        with pytest.raises(ValueError, match=r"not the state|version|damaged|state of"):
            kind.from_bytes(bytes(damaged))
    for size in range(0, len(saved), 5):
        with pytest.raises(ValueError, match=r"not the state|damaged"):
            kind.from_bytes(saved[:size])
    with pytest.raises(ValueError, match="damaged"):
        kind.from_bytes(saved + b"\0")


@every
def test_the_bytes_of_another_detector_are_refused(kind):
    for other in DETECTORS:
        if other is not kind:
            with pytest.raises(ValueError, match=f"this is the state of {other.__name__}, not of {kind.__name__}"):
                kind.from_bytes(make(other).to_bytes())


@every
def test_labels_that_bytes_cannot_keep_are_told_so_and_pickle_keeps_them(kind):
    detector = make(kind, labels=((0, "a"), (1, "b"), frozenset({2})))
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
def test_anything_equal_to_a_label_is_that_label(kind, convention):
    truth, guess = restless(600)
    plain, other = make(kind), make(kind)
    assert plain.update_many(truth, guess) == other.update_many(convention(truth), convention(guess))
    assert plain.to_bytes() == other.to_bytes()


@every
@pytest.mark.parametrize("one", [int, bool, float, np.int8, np.uint64, np.float32, np.bool_])
def test_one_event_may_come_in_any_number_type(kind, one):
    plain, other = make(kind), make(kind)
    for truth, guess in zip(*(codes.tolist() for codes in restless(300)), strict=True):
        assert plain.update(truth, guess) == other.update(one(truth), one(guess))
    assert plain.to_bytes() == other.to_bytes()


@every
@pytest.mark.parametrize("labels", [("ham", "spam"), (-1, 1), (False, True), (b"n", b"y"), (1.5, 2.5)])
def test_named_labels_give_what_their_codes_give(kind, labels):
    truth, guess = restless(600)
    plain, named = make(kind), make(kind, labels=labels)
    array = np.array(labels)
    expected = plain.update_many(truth, guess)
    assert named.update_many(array[truth], array[guess]) == expected
    single = make(kind, labels=labels)
    found = [single.update(labels[t], labels[g]) for t, g in zip(truth, guess, strict=True)]
    assert [drift for drift in found if drift] == expected


@every
def test_minus_one_is_refused_unless_it_is_named(kind):
    with pytest.raises(ValueError, match=r"y_true: label -1 is not one of \(0, 1\)"):
        make(kind).update(-1, 1)
    with pytest.raises(ValueError, match=r"y_pred: label -1 at position 2 is not one of \(0, 1\)"):
        make(kind).update_many([0, 1, 1], [0, 1, -1])
    make(kind, labels=(-1, 1)).update(-1, 1)


@every
def test_naming_the_positive_label_is_the_same_as_putting_it_second(kind):
    truth, guess = (np.take(("bad", "good"), codes) for codes in restless(600))
    named = make(kind, labels=("bad", "good"), positive="bad").update_many(truth, guess)
    second = make(kind, labels=("good", "bad")).update_many(truth, guess)
    assert named == second


@every
@pytest.mark.parametrize("bad", [2, -1, 0.5, math.nan, None, "1", b"1", [1], {}, ...], ids=repr)
def test_a_bad_label_is_named_and_leaves_the_state_untouched(kind, bad):
    detector = make(kind)
    detector.update_many(*restless(400))
    before = detector.to_bytes()
    for pair in ((bad, 1), (1, bad), (bad, bad)):
        with pytest.raises((ValueError, TypeError)) as caught:
            detector.update(*pair)
        assert "y_true" in str(caught.value) or "y_pred" in str(caught.value)
    assert detector.to_bytes() == before


@every
@pytest.mark.parametrize(
    ("truth", "guess", "message"),
    [
        ([0, 1, 2], [0, 1, 1], "y_true: label 2 at position 2 is not one of"),
        ([0, 1, 1], [0, 7, 1], "y_pred: label 7 at position 1 is not one of"),
        ([0.0, math.nan], [0, 1], "y_true: label nan at position 1 is not one of"),
        ([0, None], [0, 1], "y_true: label None at position 1 is not one of"),
        (["0", "1"], [0, 1], "y_true: label '0' at position 0 is not one of"),
        ([0.5, 1], [0, 1], "y_true: label 0.5 at position 0 is not one of"),
        ([0, 1, 0], [0, 1], "y_true has 3 events, y_pred has 2"),
        ([], [1], "y_true has 0 events, y_pred has 1"),
        (np.array([[0, 1], [1, 0]]), [0, 1], "y_true has 2 dimensions, not one"),
        ([0, 1], np.array([[0, 1]]), "y_pred has 2 dimensions, not one"),
        ([[0, 1], [1, 0]], [0, 1], r"y_true: label \[0, 1\] at position 0 is not one of"),
        (1, 1, "y_true has 0 dimensions, not one"),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_the_state_untouched(kind, truth, guess, message):
    detector = make(kind)
    detector.update_many(*restless(400))
    before = detector.to_bytes()
    with pytest.raises(ValueError, match=message):
        detector.update_many(truth, guess)
    assert detector.to_bytes() == before


@every
def test_one_bad_label_at_the_end_of_a_long_batch_takes_none_of_it(kind):
    detector = make(kind)
    truth, guess = restless(5000)
    before = detector.to_bytes()
    with pytest.raises(ValueError, match="at position 5000"):
        detector.update_many([*truth, 3], [*guess, 1])
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
def test_labels_that_cannot_be_told_apart_are_refused(kind, labels, error, message):
    with pytest.raises(error, match=message):
        make(kind, labels=labels)


@every
@pytest.mark.parametrize("name", ["warn", "detect"])
@pytest.mark.parametrize("value", ["often", [0.1], 1j])
def test_a_threshold_that_is_no_number_is_refused(kind, name, value):
    with pytest.raises(TypeError, match=re.escape(f"{name} {value!r} is not a number")):
        kind(**{**DETECTORS[kind], name: value})


@every
def test_parameters_may_be_numpy_scalars(kind):
    scalars = {name: np.array(value)[()] for name, value in DETECTORS[kind].items()}
    assert kind(**scalars).to_bytes() == make(kind).to_bytes()


@every
def test_numpy_labels_are_kept_as_what_they_stand_for(kind):
    detector = make(kind, labels=np.array([3, 7]), positive=np.int64(3))
    assert detector.parameters["labels"] == [3, 7]
    detector.update(3, 7)
    assert kind.from_bytes(detector.to_bytes()).events == 1


@every
def test_labels_may_come_from_an_iterator_once(kind):
    detector = make(kind, labels=iter(("ham", "spam")))
    detector.update("ham", "spam")
    assert detector.clone().parameters["labels"] == ["ham", "spam"]
