"""DDM: a trace worked by hand, the rules at zero errors and ties, and what it is blind to."""

import math

import numpy as np
import pytest
from traces import alarms_around_the_change, level, rows

import fourrates as fr
from fourrates.streams import SCENARIOS

# With 5 observations before anything is trusted. p = errors / n; s = root of p (1 - p) / n; least is the smallest
# p + s since event 6, the first with an error; warn = p_min + 2 s_min, detect = p_min + 3 s_min. From event 12 on
# p_min = 1/13 and s_min = 0.073905.
TRACE = """
event error  n errors      p        s      p+s    least     warn   detect state
    0     0  1      0      0 0.000000 0.000000        -        -        - quiet
    1     0  2      0      0 0.000000 0.000000        -        -        - quiet
    2     0  3      0      0 0.000000 0.000000        -        -        - quiet
    3     0  4      0      0 0.000000 0.000000        -        -        - quiet
    4     0  5      0      0 0.000000 0.000000        -        -        - quiet
    5     0  6      0      0 0.000000 0.000000        -        -        - quiet
    6     1  7      1    1/7 0.132260 0.275117 0.275117 0.407377 0.539637 quiet
    7     0  8      1    1/8 0.116927 0.241927 0.241927 0.358854 0.475780 quiet
    8     0  9      1    1/9 0.104757 0.215868 0.215868 0.320624 0.425381 quiet
    9     0 10      1   1/10 0.094868 0.194868 0.194868 0.289737 0.384605 quiet
   10     0 11      1   1/11 0.086678 0.177588 0.177588 0.264266 0.350944 quiet
   11     0 12      1   1/12 0.079786 0.163119 0.163119 0.242905 0.322690 quiet
   12     0 13      1   1/13 0.073905 0.150828 0.150828 0.224734 0.298639 quiet
   13     1 14      2    1/7 0.093522 0.236379 0.150828 0.224734 0.298639 warning
   14     0 15      2   2/15 0.087771 0.221104 0.150828 0.224734 0.298639 quiet
   15     0 16      2    1/8 0.082680 0.207680 0.150828 0.224734 0.298639 quiet
   16     0 17      2   2/17 0.078142 0.195790 0.150828 0.224734 0.298639 quiet
   17     0 18      2    1/9 0.074074 0.185185 0.150828 0.224734 0.298639 quiet
   18     0 19      2   2/19 0.070406 0.175669 0.150828 0.224734 0.298639 quiet
   19     0 20      2   1/10 0.067082 0.167082 0.150828 0.224734 0.298639 quiet
   20     1 21      3    1/7 0.076360 0.219217 0.150828 0.224734 0.298639 quiet
   21     1 22      4   2/11 0.082230 0.264049 0.150828 0.224734 0.298639 warning
   22     0 23      4   4/23 0.079034 0.252947 0.150828 0.224734 0.298639 warning
   23     1 24      5   5/24 0.082898 0.291232 0.150828 0.224734 0.298639 warning
   24     1 25      6   6/25 0.085417 0.325417 0.150828 0.224734 0.298639 drift
"""


def test_every_step_of_the_trace_is_as_worked_by_hand():
    detector = fr.baselines.DDM(minimum=5)
    for row in rows(TRACE):
        drift = detector.update(1, 1 - int(row["error"]))
        assert level(detector) == row["state"], row
        if drift:
            break
        state = detector.rates["error"]
        assert state.n == row["n"]
        assert state.estimate == pytest.approx(float(row["p"]))
        assert state.statistic - state.estimate == pytest.approx(float(row["s"]), abs=5e-7)
        assert state.statistic == pytest.approx(float(row["p+s"]), abs=5e-7)
        if row["least"] is None:
            assert state.expected is None
            assert state.warn.upper == state.detect.upper == math.inf
        else:
            assert state.expected == pytest.approx(float(row["least"]), abs=5e-7)
            assert state.warn.upper == pytest.approx(float(row["warn"]), abs=5e-7)
            assert state.detect.upper == pytest.approx(float(row["detect"]), abs=5e-7)
    assert (drift.at, drift.since) == (24, 21)  # the warning of event 13 lapsed
    assert drift.confusion == ((0, 0), (6, 19))
    (change,) = drift.changes
    assert (change.rate, change.direction, change.n, change.decay) == ("error", "up", 25, None)
    assert change.statistic == pytest.approx(0.325417, abs=5e-7)
    assert change.bound == pytest.approx(0.298639, abs=5e-7)
    assert change.expected == pytest.approx(0.150828, abs=5e-7)


def test_after_a_drift_it_starts_afresh_and_counts_on():
    detector = fr.baselines.DDM(minimum=5)
    errors = [int(row["error"]) for row in rows(TRACE)]
    preds = [1 - error for error in errors]
    first, second = detector.update_many([1] * 50, preds + preds)
    assert (second.at, second.since) == (first.at + 25, first.since + 25)
    assert second.changes == first.changes


def test_a_perfect_classifier_never_alarms_and_its_first_error_is_no_drift():
    detector = fr.baselines.DDM()
    assert detector.update_many([1] * 10_000, [1] * 10_000) == []
    assert not detector.warning_detected
    assert detector.update(1, 0) is None
    assert not detector.warning_detected
    # From now on there is something to compare with: p = 1/10001, s the same but for five digits. A second error makes
    # p + s = 3.41e-4, above 3e-4; a third 4.73e-4, above 4e-4.
    assert detector.update(1, 0) is None
    assert detector.warning_detected
    drift = detector.update(1, 0)
    assert (drift.at, drift.since) == (10_002, 10_001)


def test_a_classifier_that_is_always_wrong_ties_with_its_bound_and_stays_quiet():
    detector = fr.baselines.DDM()
    assert detector.update_many([1] * 1000, [0] * 1000) == []
    assert not detector.warning_detected
    state = detector.rates["error"]
    assert state.statistic == state.warn.upper == state.detect.upper == 1.0


def test_the_observation_of_the_minimum_is_the_first_that_is_tested():
    early, late = fr.baselines.DDM(minimum=2), fr.baselines.DDM(minimum=3)
    for detector in (early, late):
        detector.update(1, 1)
        detector.update(1, 0)
    assert early.rates["error"].expected == pytest.approx(0.5 + math.sqrt(0.125))
    assert late.rates["error"].expected is None


@pytest.mark.parametrize("labels", [("ham", "spam"), ("cat", "dog", "fish")])
def test_only_whether_labels_are_equal_matters(labels):
    random = np.random.default_rng(0)
    truth = random.integers(0, len(labels), 4000)
    wrong = random.random(4000) < np.repeat([0.1, 0.5], 2000)
    pred = (truth + wrong) % len(labels)
    named = fr.baselines.DDM(labels=labels).update_many(np.take(labels, truth), np.take(labels, pred))
    plain = fr.baselines.DDM().update_many(np.zeros(4000, int), wrong.astype(int))
    assert len(named) > 0
    assert [(drift.at, drift.since, drift.changes) for drift in named] == [
        (drift.at, drift.since, drift.changes) for drift in plain
    ]


def test_a_drift_that_keeps_the_error_rate_is_invisible():
    # The tpr falls from 0.75 to 0.25, yet an event is wrong with probability 0.2 before and after. Four deviations of
    # the difference, two-sided: a chance of 1 in 16,000 if it is blind. It cannot pass by alarming nowhere: where the
    # error rate rises from 0.1 to 0.3, it finds a third of the changes. (The paper counts 36 of 100; the difference of
    # two such counts has a deviation of the root of 200 * 0.36 * 0.64 = 6.8, and four of those are 27.)
    before, after = alarms_around_the_change(fr.baselines.DDM, SCENARIOS["Imbalance2"], 400)
    assert abs(after - before) <= 4 * math.sqrt(max(after + before, 1))
    before, after = alarms_around_the_change(fr.baselines.DDM, SCENARIOS["Imbalance3"], 100)
    assert abs(after - 36) <= 27


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"warn": 0}, "warn 0.0 is not a positive number of deviations"),
        ({"warn": 3.0}, "warn 3.0 is not smaller than detect 3.0"),
        ({"detect": math.nan}, "detect nan is not a positive number of deviations"),
        ({"detect": math.inf}, "detect inf is not a positive number of deviations"),
        ({"minimum": 0}, "minimum 0 is less than 1"),
        ({"minimum": 2.5}, "minimum 2.5 is not a whole number"),
    ],
)
def test_bad_parameters_are_refused_by_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        fr.baselines.DDM(**arguments)
