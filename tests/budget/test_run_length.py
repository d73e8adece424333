"""Run lengths foretold against run lengths measured; the whole grid is in benchmarks/run_length.py."""

import math

import pytest

import fourrates as fr
from fourrates.budget.coincidence import Statistic, first_shares
from fourrates.budget.confusion import probabilities
from fourrates.budget.simulation import simulated_run_length


def agree(detector, confusion, alarms=300):
    found = simulated_run_length(detector, confusion, alarms, seed=1)
    expected = fr.budget.expected_run_length(detector, confusion)
    # 10 % is promised; the mean of 300 runs, about exponential, has a standard error of 6 %.
    return abs(expected - found.mean) <= 0.1 * found.mean + 3 * found.standard_error


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("decay", [0.8, 0.9])
def test_the_run_length_is_foretold_within_a_tenth(decay, rate):
    assert agree(fr.LFR(decay, detect=1e-3), [[rate, 1 - rate], [1 - rate, rate]])


def test_a_long_run_near_the_rate_where_runs_of_hits_raise_alarms_is_foretold():
    # Here equally spaced points were wrong by a factor of two: an alarm is a run of some 35 hits, at R = 0.997.
    assert agree(fr.LFR(0.9, detect=1e-4), [[80, 20], [20, 80]])


@pytest.mark.slow
def test_a_long_memory_with_frequent_alarms_is_foretold():
    assert agree(fr.LFR(0.98, detect=1e-3), [[50, 50], [50, 50]])


@pytest.mark.parametrize("confusion", [[[85, 5], [2, 8]], [[65, 15], [5, 15]], [[98, 1], [0.3, 0.7]]])
def test_imbalanced_classes_are_foretold(confusion):
    assert agree(fr.LFR(0.9, detect=1e-3), confusion)


@pytest.mark.slow
def test_three_classes_are_foretold():
    assert agree(fr.LFR(0.9, detect=1e-3, labels=["a", "b", "c"]), [[45, 3, 2], [4, 24, 2], [3, 3, 14]])


@pytest.mark.slow
def test_several_decays_that_share_their_bits_are_foretold():
    assert agree(fr.LFR((0.8, 0.9, 0.94), detect=2e-3), [[45, 5], [5, 45]])


def test_one_side_is_foretold():
    assert agree(fr.LFR(0.9, detect=1e-3, sides="down"), [[45, 5], [5, 45]])


@pytest.mark.slow
def test_statistics_of_one_rate_that_are_nearly_the_same_alarm_as_one():
    confusion = [[45, 5], [5, 45]]
    one = fr.budget.expected_run_length(fr.LFR(0.9, detect=1e-4), confusion)
    two = fr.budget.expected_run_length(fr.LFR((0.9, 0.901), detect=2e-4), confusion)  # 1e-4 each
    # Each share of first alarms has a standard error of 1.6 %, and bounds move in steps.
    assert 0.85 * one <= two <= 1.1 * one


def test_rates_that_share_nothing_never_alarm_together():
    matrix = probabilities([[45, 5], [5, 45]], 2)
    recalls = [Statistic(i, 0.5, 0.9, 0.9, (0.5, 2.0), 1e-5) for i in (0, 1)]
    assert first_shares(recalls, matrix) == [1.0, 1.0]


def test_a_perfect_classifier_raises_no_false_alarm():
    assert fr.budget.expected_run_length(fr.LFR(), [[50, 0], [0, 50]]) == math.inf


def test_a_class_that_never_comes_is_left_out():
    assert math.isfinite(
        fr.budget.expected_run_length(fr.LFR(labels=["a", "b", "c"]), [[40, 10, 0], [10, 40, 0], [0, 0, 0]])
    )


def test_the_same_question_has_the_same_answer():
    detector = fr.LFR(0.9, detect=1e-4)
    confusion = [[40, 10], [10, 40]]
    assert fr.budget.expected_run_length(detector, confusion) == fr.budget.expected_run_length(detector, confusion)


@pytest.mark.parametrize(
    ("confusion", "message"),
    [
        ([[1, 2, 3]], r"has shape \(1, 3\), not \(2, 2\)"),
        ([[1, -2], [1, 1]], "something other than probabilities or counts"),
        ([[0, 0], [0, 0]], "something other than probabilities or counts"),
        ([[1, math.nan], [1, 1]], "something other than probabilities or counts"),
    ],
)
def test_what_is_no_confusion_matrix_is_refused(confusion, message):
    with pytest.raises(ValueError, match=message):
        fr.budget.expected_run_length(fr.LFR(), confusion)
