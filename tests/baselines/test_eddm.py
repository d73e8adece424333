"""EDDM: a trace worked by hand, the rules at ties and between errors, and what it is blind to."""

import math

import numpy as np
import pytest
from traces import alarms_around_the_change, level, rows

import fourrates as fr
from fourrates.streams import SCENARIOS

# With 4 errors before anything is trusted; one line an error, the events between are right. The mean and the variance
# are those of all distances so far, the variance divided by their number; reach = mean + 2 roots of the variance; most
# is the greatest reach since the fourth error. Warning below 0.95, drift below 0.90 of it.
TRACE = """
event distance errors  mean variance    reach     most    share state
    2        3      1     3        0 3.000000        -        - quiet
    7        5      2     4        1 6.000000        -        - quiet
   10        3      3  11/3      8/9 5.552285        -        - quiet
   15        5      4     4        1 6.000000 6.000000 1.000000 quiet
   19        4      5     4      4/5 5.788854 6.000000 0.964809 quiet
   24        5      6  25/6    29/36 5.961722 6.000000 0.993620 quiet
   25        1      7  26/7    94/49 6.484388 6.484388 1.000000 quiet
   27        2      8   7/2        2 6.328427 6.484388 0.975948 quiet
   28        1      9  29/9   194/81 6.317420 6.484388 0.974251 quiet
   29        1     10     3     13/5 6.224903 6.484388 0.959983 quiet
   30        1     11 31/11  326/121 6.100995 6.484388 0.940874 warning
   31        1     12   8/3    49/18 5.966498 6.484388 0.920133 warning
   32        1     13 33/13  458/169 5.830913 6.484388 0.899223 drift
"""


def spaced(distances):
    """Whether each event is an error, when errors come at these distances."""
    return [error for distance in distances for error in [0] * (distance - 1) + [1]]


def test_every_step_of_the_trace_is_as_worked_by_hand():
    detector = fr.baselines.EDDM(minimum=4)
    for row in rows(TRACE):
        for _ in range(int(row["distance"]) - 1):
            before = repr(detector.rates), detector.warning_detected  # nan is not equal to itself
            assert detector.update(0, 0) is None
            assert (repr(detector.rates), detector.warning_detected) == before
        drift = detector.update(0, 1)
        assert detector.events == row["event"] + 1
        assert level(detector) == row["state"], row
        if drift:
            break
        state = detector.rates["distance"]
        assert state.n == row["errors"]
        assert state.estimate == pytest.approx(float(row["mean"]))
        assert state.statistic == pytest.approx(float(row["reach"]), abs=5e-7)
        assert ((state.statistic - state.estimate) / 2) ** 2 == pytest.approx(float(row["variance"]))
        if row["most"] is None:
            assert state.expected is None
            assert state.warn.lower == state.detect.lower == -math.inf
        else:
            assert state.expected == pytest.approx(float(row["most"]), abs=5e-7)
            assert state.statistic / state.expected == pytest.approx(float(row["share"]), abs=5e-7)
            assert state.warn.lower == pytest.approx(0.95 * float(row["most"]), abs=5e-7)
            assert state.detect.lower == pytest.approx(0.90 * float(row["most"]), abs=5e-7)
    assert (drift.at, drift.since) == (32, 30)
    assert drift.confusion == ((20, 13), (0, 0))
    (change,) = drift.changes
    assert (change.rate, change.direction, change.n, change.decay) == ("distance", "down", 13, None)
    assert change.statistic == pytest.approx(5.830913, abs=5e-7)
    assert change.bound == pytest.approx(0.90 * 6.484388, abs=5e-7)
    assert change.expected == pytest.approx(6.484388, abs=5e-7)


def test_after_a_drift_it_starts_afresh_and_counts_on():
    distances = [int(row["distance"]) for row in rows(TRACE)]
    errors = spaced(distances + distances)
    first, second = fr.baselines.EDDM(minimum=4).update_many([0] * len(errors), errors)
    assert (second.at, second.since) == (first.at + 33, first.since + 33)
    assert second.changes == first.changes


def test_a_warning_stands_between_errors():
    detector = fr.baselines.EDDM(minimum=4)
    errors = spaced([int(row["distance"]) for row in rows(TRACE)][:-1])
    assert detector.update_many([0] * len(errors), errors) == []
    assert detector.warning_detected
    assert detector.update_many([0] * 50, [0] * 50) == []
    assert detector.warning_detected
    assert detector.update(0, 1) is None  # a distance of 51 makes the longest reach of all
    assert not detector.warning_detected


def test_equal_distances_tie_with_the_maximum_and_stay_quiet():
    errors = spaced([7] * 200)
    detector = fr.baselines.EDDM()
    assert detector.update_many([0] * len(errors), errors) == []
    state = detector.rates["distance"]
    assert state.statistic == state.expected == 7.0


def test_the_error_of_the_minimum_is_the_first_that_is_measured():
    detector = fr.baselines.EDDM(minimum=2)
    detector.update(0, 1)
    assert detector.rates["distance"].expected is None
    detector.update(0, 1)
    assert detector.rates["distance"].expected == 1.0


@pytest.mark.slow
def test_a_drift_that_keeps_the_error_rate_is_invisible():
    # The tpr falls from 0.75 to 0.25, yet the distances between errors have one law before and after. Four deviations
    # of the difference, two-sided: a chance of 1 in 16,000 if it is blind. It cannot pass by alarming nowhere: where
    # the error rate rises from 0.1 to 0.3, the changes it finds must exceed the alarms before by six deviations.
    before, after = alarms_around_the_change(fr.baselines.EDDM, SCENARIOS["Imbalance2"], 400)
    assert abs(after - before) <= 4 * math.sqrt(max(after + before, 1))
    before, after = alarms_around_the_change(fr.baselines.EDDM, SCENARIOS["Imbalance3"], 400)
    assert after - before > 6 * math.sqrt(after + before)


def test_far_apart_errors_keep_their_precision():
    # Welford's update against the plain two-pass formula, at distances of a million.
    random = np.random.default_rng(1)
    distances = 1_000_000 + random.integers(-5, 6, 40)
    detector = fr.baselines.EDDM(minimum=1000)
    for distance in distances:
        detector.update_many(np.zeros(distance, np.uint8), np.arange(distance) == distance - 1)
    state = detector.rates["distance"]
    assert state.estimate == pytest.approx(distances.mean(), rel=1e-15)
    assert (state.statistic - state.estimate) / 2 == pytest.approx(distances.std(), rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"warn": 1.0}, r"warn 1.0 is not in \(0, 1\)"),
        ({"detect": 0.0}, r"detect 0.0 is not in \(0, 1\)"),
        ({"warn": 0.9}, "warn 0.9 is not larger than detect 0.9"),
        ({"minimum": -1}, "minimum -1 is less than 1"),
    ],
)
def test_bad_parameters_are_refused_by_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        fr.baselines.EDDM(**arguments)
