"""ThreeMeasures: a trace worked by hand, what cannot be measured, and what it is blind to."""

import math

import pytest
from traces import level, rows

import fourrates as fr

# Batches of 5 events: how many are tn, fp, fn and tp; then one measure a line with its value, and mean and standard
# error of its last 3 values: the root of the sum of squared differences from the mean, over 2, over 3. Warning and
# drift are 3 and 6 errors below the mean. Batch 4 has neither positives nor predicted ones, so its recall and precision
# are not taken.
TRACE = """
batch tn fp fn tp   measure n value  mean    error     warn    detect state
    0  2  0  0  3  accuracy 5     1     -        -        -         - quiet
    0  2  0  0  3    recall 3     1     -        -        -         - quiet
    0  2  0  0  3 precision 3     1     -        -        -         - quiet
    1  2  0  1  2  accuracy 5   4/5     -        -        -         - quiet
    1  2  0  1  2    recall 3   2/3     -        -        -         - quiet
    1  2  0  1  2 precision 2     1     -        -        -         - quiet
    2  2  1  0  2  accuracy 5   4/5     -        -        -         - quiet
    2  2  1  0  2    recall 2     1     -        -        -         - quiet
    2  2  1  0  2 precision 3   2/3     -        -        -         - quiet
    3  1  1  1  2  accuracy 5   3/5 13/15 0.066667 0.666667  0.466667 warning
    3  1  1  1  2    recall 3   2/3   8/9 0.111111 0.555556  0.222222 quiet
    3  1  1  1  2 precision 3   2/3   8/9 0.111111 0.555556  0.222222 quiet
    4  5  0  0  0  accuracy 5     1 11/15 0.066667 0.533333  0.333333 quiet
    4  5  0  0  0    recall -     -     -        -        -         - -
    4  5  0  0  0 precision -     -     -        -        -         - -
    5  1  0  2  2  accuracy 5   3/5   4/5 0.115470 0.453590  0.107180 quiet
    5  1  0  2  2    recall 4   1/2   7/9 0.111111 0.444444  0.111111 quiet
    5  1  0  2  2 precision 2     1   7/9 0.111111 0.444444  0.111111 quiet
    6  1  2  2  0  accuracy 5   1/5 11/15 0.133333 0.333333 -0.066667 warning
    6  1  2  2  0    recall 2     0 13/18 0.146986 0.281264 -0.159695 warning
    6  1  2  2  0 precision 2     0   7/9 0.111111 0.444444  0.111111 drift
"""
CELLS = {"tn": (0, 0), "fp": (0, 1), "fn": (1, 0), "tp": (1, 1)}
LEVELS = ("quiet", "warning", "drift")


def pairs(row):
    """The events of a batch, in an order that does not matter."""
    return [pair for name, pair in CELLS.items() for _ in range(int(row[name]))]


def by_batch():
    table = rows(TRACE)
    return list(zip(table[::3], table[1::3], table[2::3], strict=True))


def test_every_step_of_the_trace_is_as_worked_by_hand():
    detector = fr.baselines.ThreeMeasures(warn=3, detect=6, batch=5, history=3)
    state = "quiet"
    for measures in by_batch():
        *inside, last = pairs(measures[0])
        for truth, pred in inside:
            assert detector.update(truth, pred) is None
            assert level(detector) == state  # what the last batch left
        before = detector.rates
        drift = detector.update(*last)
        state = max((row["state"] or "quiet" for row in measures), key=LEVELS.index)
        assert level(detector) == state, measures
        if drift:
            break
        for row in measures:
            found = detector.rates[row["measure"]]
            if row["value"] is None:
                assert found == before[row["measure"]]
                continue
            assert found.n == row["n"]
            assert found.estimate == found.statistic == pytest.approx(float(row["value"]))
            if row["mean"] is None:
                assert found.expected is None
                assert found.warn.lower == found.detect.lower == -math.inf
            else:
                assert found.expected == pytest.approx(float(row["mean"]))
                assert (found.expected - found.warn.lower) / 3 == pytest.approx(float(row["error"]), abs=5e-7)
                assert found.warn.lower == pytest.approx(float(row["warn"]), abs=5e-7)
                assert found.detect.lower == pytest.approx(float(row["detect"]), abs=1e-6)
    assert (drift.at, drift.since) == (34, 30)  # the warning of batch 3 lapsed
    assert drift.window == range(30, 35)
    assert drift.confusion == ((14, 4), (6, 11))
    (change,) = drift.changes
    assert (change.rate, change.direction, change.n, change.statistic) == ("precision", "down", 2, 0.0)
    assert change.bound == pytest.approx(0.111111, abs=5e-7)
    assert change.expected == pytest.approx(7 / 9)


def test_after_a_drift_it_starts_afresh_and_counts_on():
    events = [pair for measures in by_batch() for pair in pairs(measures[0])]
    truth, pred = map(list, zip(*events, strict=True))
    detector = fr.baselines.ThreeMeasures(warn=3, detect=6, batch=5, history=3)
    first, second = detector.update_many(truth + truth, pred + pred)
    assert (second.at, second.since) == (first.at + 35, first.since + 35)
    assert second.changes == first.changes


@pytest.mark.parametrize("errors", [0, 1, 3])
def test_a_history_without_spread_is_nothing_to_measure_a_fall_by(errors):
    # 0.9 ten times over has a mean that is a hair off 0.9 in binary; that is no spread either.
    pred = ([0] * errors + [1] * (10 - errors)) * 20 + [0] * 5 + [1] * 5
    detector = fr.baselines.ThreeMeasures(batch=10, history=10)
    assert detector.update_many([1] * len(pred), pred) == []
    assert not detector.warning_detected
    assert detector.rates["accuracy"].detect.lower == -math.inf


def test_slow_decay_is_followed_down_unseen_and_a_sudden_fall_is_not():
    slow = [int(i % 200 >= 10 + 2 * (i // 200)) for i in range(8200)]  # one per cent less in every batch
    detector = fr.baselines.ThreeMeasures()
    assert detector.update_many([1] * 8200, slow) == []
    assert detector.rates["accuracy"].statistic == 0.55
    (drift,) = detector.update_many([1] * 200, [0] * 200)
    assert [change.rate for change in drift.changes] == ["accuracy", "recall"]


def test_improvement_is_no_alarm():
    detector = fr.baselines.ThreeMeasures(batch=10, history=3)
    pred = [0, 1] * 5 + [0, 1, 1, 1, 1] * 2 + [0, 1] * 5 + [1] * 10
    assert detector.update_many([1] * 40, pred) == []
    assert not detector.warning_detected


def test_the_class_to_watch_can_be_any_of_many():
    detector = fr.baselines.ThreeMeasures(batch=4, labels=("cat", "dog", "fish"), positive="dog")
    detector.update_many(["dog", "dog", "cat", "fish"], ["dog", "cat", "dog", "fish"])
    assert [state.statistic for state in detector.rates.values()] == [0.5, 0.5, 0.5]
    detector.update_many(["dog", "dog", "dog", "fish"], ["dog", "cat", "dog", "fish"])
    assert [state.statistic for state in detector.rates.values()] == pytest.approx([3 / 4, 2 / 3, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"warn": 20}, "warn 20.0 is not smaller than detect 15.0"),
        ({"batch": 0}, "batch 0 is less than 1"),
        ({"history": 1}, "history 1 is less than 2"),
        ({"labels": (0, 1, 2), "positive": 3}, r"positive 3 is not one of \(0, 1, 2\)"),
    ],
)
def test_bad_parameters_are_refused_by_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        fr.baselines.ThreeMeasures(**arguments)
