"""Pairs from confusion matrices: the right shares, abrupt and gradual, and matrices that are none."""

import hashlib

import numpy as np
import pytest

from fourrates.streams import SCENARIOS, Scenario

THREE = (
    [[0.3, 0.02, 0.02], [0.02, 0.3, 0.02], [0.02, 0.02, 0.28]],
    [[0.1, 0.1, 0.1], [0.2, 0.1, 0.1], [0.1, 0.1, 0.1]],
)


def counts(y_true, y_pred, classes):
    return np.bincount(y_true.astype(int) * classes + y_pred, minlength=classes**2).reshape(classes, classes)


def as_likely(found, matrix):
    """Whether counts lie within five standard errors of what a matrix lets expect; 0.00006 % a cell do not."""
    n, p = found.sum(), np.asarray(matrix)
    return (abs(found - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_half_has_the_shares_of_its_matrix(name):
    scenario = SCENARIOS[name]
    y_true, y_pred = scenario.stream(seed=1, length=200_000)
    assert as_likely(counts(y_true[:100_000], y_pred[:100_000], 2), scenario.before)
    assert as_likely(counts(y_true[100_000:], y_pred[100_000:], 2), scenario.after)


def test_the_papers_matrices_are_exact():
    # As printed, by predicted class and then by true class; Imbalance3 as reconstructed.
    printed = {
        "Balance1": ([[0.4, 0.1], [0.1, 0.4]], [[0.3, 0.1], [0.2, 0.4]]),
        "Balance2": ([[0.35, 0.05], [0.15, 0.45]], [[0.4, 0.1], [0.1, 0.4]]),
        "Balance3": ([[0.3, 0.2], [0.2, 0.3]], [[0.4, 0.2], [0.1, 0.3]]),
        "Imbalance1": ([[1 / 3, 1 / 6], [1 / 6, 1 / 3]], [[13 / 15, 1 / 30], [1 / 30, 1 / 15]]),
        "Imbalance2": ([[0.65, 0.05], [0.15, 0.15]], [[0.75, 0.15], [0.05, 0.05]]),
        "Imbalance3": ([[0.7, 0.05], [0.05, 0.2]], [[0.6, 0.15], [0.15, 0.1]]),
    }
    for name, (before, after) in printed.items():
        assert np.array_equal(SCENARIOS[name].before, np.transpose(before)), name
        assert np.array_equal(SCENARIOS[name].after, np.transpose(after)), name


def test_streams_are_those_of_earlier_versions():
    # Published figures belong to these streams.
    digest = hashlib.sha256()
    for scenario in SCENARIOS.values():
        for side in scenario.stream(seed=1):
            assert side.dtype == np.uint8
            digest.update(side.tobytes())
    assert digest.hexdigest() == "303d47ab115e2facc92f0eae601302a276a2002cddf728a7cea9bfec8fc7f306"


def test_any_number_of_classes_is_drawn_from_arrays():
    scenario = Scenario(*map(np.array, THREE))
    y_true, y_pred = scenario.stream(seed=1, length=100_000, change=30_000)
    assert as_likely(counts(y_true[:30_000], y_pred[:30_000], 3), THREE[0])
    assert as_likely(counts(y_true[30_000:], y_pred[30_000:], 3), THREE[1])
    assert scenario == Scenario(*THREE)
    assert len({scenario, Scenario(*THREE)}) == 1


def test_three_hundred_classes_have_room():
    even = np.full((300, 300), 1 / 90_000)
    y_true, y_pred = Scenario(even, even).stream(seed=1, length=50_000)
    assert y_true.max() == y_pred.max() == 299


def test_what_has_no_chance_does_not_occur():
    # The sum falls short of 1 by rounding; the rest must not go to the last cell.
    short = [[0.5, 0.5 - 5e-10], [0, 0]]

    class Last:
        def random(self, size):
            return np.full(size, np.nextafter(1, 0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda seed: Last())
        y_true, y_pred = Scenario(short, short).stream(seed=1, length=10)
    assert (set(y_true.tolist()), set(y_pred.tolist())) == ({0}, {1})


def test_a_gradual_change_rises_linearly():
    # Balance1 moves the share of (0, 1) from 0.1 to 0.2. In 400 streams each tenth of the rise has 400 x 200 events:
    # standard error at most sqrt(0.2 x 0.8 / 80,000) = 0.0014; five of them.
    seen = np.zeros(10)
    for seed in range(400):
        y_true, y_pred = SCENARIOS["Balance1"].stream(seed, length=6000, change=2000, width=2000)
        cell = (y_true == 0) & (y_pred == 1)
        seen += cell[2000:4000].reshape(10, 200).mean(1) / 400
    expected = 0.1 + 0.1 * (np.arange(10) + 0.5) / 10
    np.testing.assert_allclose(seen, expected, atol=0.007)


def test_a_gradual_change_leaves_the_rest_of_the_stream_as_it_was():
    abrupt = np.array(SCENARIOS["Balance2"].stream(seed=3))
    gradual = np.array(SCENARIOS["Balance2"].stream(seed=3, width=1000))
    differs = np.flatnonzero((abrupt != gradual).any(0))
    assert differs.size
    assert differs.min() >= 5000
    assert differs.max() < 6000


def test_a_rise_is_cut_where_the_stream_ends():
    y_true, _ = SCENARIOS["Balance2"].stream(seed=3, length=1000, change=900, width=5000)
    assert y_true.size == 1000


def test_a_change_at_the_end_is_none():
    stable = Scenario(THREE[0], THREE[0])
    for one, other in zip(
        Scenario(*THREE).stream(1, 100, change=100), stable.stream(1, 100, change=100, width=7), strict=True
    ):
        assert np.array_equal(one, other)


GOOD = [[0.4, 0.1], [0.1, 0.4]]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([[0.4, 0.1], [0.1, 0.3]], GOOD, "before sums to 0.9, not to 1"),
        (GOOD, [[0.5, -0.1], [0.2, 0.4]], r"after\[0\]\[1\] is -0.1, not a probability"),
        (GOOD, [[0.5, 0.1], [float("nan"), 0.4]], r"after\[1\]\[0\] is nan, not a probability"),
        (GOOD, [[0.5, 0.1, 0.1], [0.1, 0.1, 0.1]], r"after has shape \(2, 3\), not K x K"),
        ([[1.0]], GOOD, r"before has shape \(1, 1\), not K x K with two classes or more"),
        (GOOD, THREE[0], r"before has shape \(2, 2\), after has \(3, 3\): a change keeps the classes"),
        ("matrix", GOOD, "before is not a matrix of numbers: 'matrix'"),
        ([[0.4, 0.1], [0.5]], GOOD, "before is not a matrix of numbers"),
    ],
)
def test_a_matrix_that_is_none_is_named(before, after, message):
    with pytest.raises(ValueError, match=message):
        Scenario(before, after)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"change": 101}, "change 101 is not in 0, ..., 100"),
        ({"change": -1}, "change -1 is not in"),
        ({"width": -1}, "width -1 is negative"),
    ],
)
def test_a_change_outside_the_stream_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SCENARIOS["Balance1"].stream(seed=1, length=100, **options)
