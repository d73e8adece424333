"""Run lengths asked for against run lengths measured."""

import math

import pytest

import fourrates as fr


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.8, 0.9, 0.98, (0.9, 0.98)])
@pytest.mark.parametrize("confusion", [[[45, 5], [5, 45]], [[30, 20], [20, 30]], [[85, 5], [2, 8]]])
def test_the_run_length_asked_for_is_kept(confusion, decay):
    arl = 5_000
    found = fr.budget.expected_run_length(fr.LFR(decay, arl=arl), confusion, alarms=200, seed=5)
    # Run lengths are about exponential: a mean of 200 has a standard error of 7 %, and three of them are allowed for.
    # Alarms of recall and precision that coincide, and rates near 1 that cannot rise, make it longer; several decays,
    # which often alarm together, too.
    assert 0.95 * arl <= found.mean + 3 * found.standard_error
    assert found.mean - 3 * found.standard_error <= (2 if isinstance(decay, float) else 3) * arl


@pytest.mark.slow
def test_three_classes_keep_the_run_length_asked_for():
    detector = fr.LFR(0.9, arl=5_000, labels=["a", "b", "c"])
    found = fr.budget.expected_run_length(detector, [[45, 3, 2], [4, 24, 2], [3, 3, 14]], alarms=200)
    assert 0.95 * 5_000 - 3 * found.standard_error <= found.mean <= 2 * 5_000 + 3 * found.standard_error


@pytest.mark.slow
def test_levels_and_run_lengths_are_inverse_to_each_other():
    found = fr.budget.design(50_000, 0.9)
    # Bounds move in steps: levels near by give one and the same bound.
    assert 50_000 <= min(found.run_lengths.values()) <= 55_000
    worst = min(found.run_lengths, key=found.run_lengths.get)
    detector = fr.LFR(0.9, detect=found.detect)
    again = fr.budget.expected_run_length(detector, [[worst, 1 - worst], [1 - worst, worst]], alarms=100)
    # Alarms of recall and precision that coincide count once; the mean of 100 has a standard error of 10 %.
    assert again.mean + 3 * again.standard_error >= 50_000
    assert again.mean - 3 * again.standard_error <= 60_000


def test_one_side_gets_twice_the_level():
    both, down = fr.budget.design(10_000, 0.98).detect, fr.budget.design(10_000, 0.98, "down").detect
    assert 1.5 * both < down < 2.5 * both


def test_a_rate_that_cannot_alarm_has_an_infinite_run_length():
    # With a decay of 0.5 a rate of one half would have to repeat a bit more often than the bounds resolve.
    assert fr.budget.design(100_000, 0.5).run_lengths[0.5] == math.inf


def test_design_is_a_function_and_no_module():
    assert callable(fr.budget.design)
    with pytest.raises(ModuleNotFoundError):
        __import__("fourrates.budget.design")


def test_a_detector_with_a_budget_survives_a_round_trip():
    detector = fr.LFR(arl=10_000)
    assert fr.LFR.from_bytes(detector.to_bytes()).to_bytes() == detector.to_bytes()
    assert "arl=10000" in repr(detector)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fr.LFR(arl=1_000, detect=1e-5), "arl 1000 and detect 1e-05"),
        (lambda: fr.LFR(arl=50), "arl 50 is not a number of events, at least 100"),
        (lambda: fr.LFR(arl="monthly"), "arl 'monthly' is not a number of events"),
        (lambda: fr.budget.design(math.nan), "arl nan is not a number of events"),
        (lambda: fr.budget.design(1e12), "the detection level for this arl, .* is not in"),
        (lambda: fr.budget.design(1_000, 1.5), r"decay 1.5 is not in \(0, 1\)"),
    ],
)
def test_bad_budgets_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
