"""Delays foretold against delays seen."""

import math

import numpy as np
import pytest

import fourrates as fr
from fourrates.budget.simulation import simulated_delay
from fourrates.streams import SCENARIOS


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.9, 0.98])
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_expected_delay_is_what_is_seen(name, decay):
    scenario = SCENARIOS[name]
    detector = fr.LFR(decay, detect=1e-4)
    expected = fr.budget.expected_delay(detector, scenario.before, scenario.after)
    seen = simulated_delay(detector, scenario.before, scenario.after, streams=100, history=5_000, horizon=1_500)
    # The median of 100 streams, with its 95 % interval; beyond that, a tenth later where false alarms have shortened
    # the past, and a quarter sooner where precisions alarm and recalls do not, which the model leaves out.
    low, high = seen.median_between
    assert 0.9 * low <= expected.median <= 1.25 * high
    # Four standard errors, and 0.06 for the same reasons.
    assert abs(seen.within(200) - expected.within(200)) <= 0.06 + 4 * math.sqrt(0.25 / 100)


def test_a_larger_change_is_found_sooner():
    detector = fr.LFR()
    medians = [
        fr.budget.expected_delay(detector, [[45, 5], [5, 45]], [[45 - m, 5 + m], [5, 45]]).median for m in (10, 20, 30)
    ]
    assert medians == sorted(medians, reverse=True)


@pytest.mark.slow
def test_no_change_is_found_at_the_rate_of_false_alarms():
    detector = fr.LFR(detect=1e-4)
    stable = [[40, 10], [10, 40]]
    found = fr.budget.expected_delay(detector, stable, stable, horizon=2_000).within(2_000)
    assert found == pytest.approx(
        1 - math.exp(-2_000 / fr.budget.expected_run_length(detector, stable, alarms=100).mean), rel=0.6
    )


def test_a_computed_delay_has_no_sampling_error():
    delay = fr.budget.expected_delay(fr.LFR(), [[45, 5], [5, 45]], [[25, 25], [5, 45]])
    assert delay.standard_error(100) == 0.0
    assert delay.median_between == (delay.median, delay.median)
    assert delay.within(0) == 0.0
    assert delay.within(10**9) == delay.within(5_000)


def test_what_is_not_found_by_the_horizon_has_an_infinite_median():
    delay = fr.budget.expected_delay(fr.LFR(), [[45, 5], [5, 45]], [[45, 5], [5, 45]], horizon=100)
    assert delay.median == math.inf
    assert 99 < delay.mean <= 100


def test_a_horizon_of_nothing_is_refused():
    with pytest.raises(ValueError, match="horizon 0 is not at least one event"):
        fr.budget.expected_delay(fr.LFR(), np.eye(2), np.eye(2), horizon=0)
