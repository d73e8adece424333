"""Run lengths asked for against run lengths measured, and delays foretold against delays seen."""

import math

import numpy as np
import pytest

import fourrates as fr
from fourrates.evaluate import score
from fourrates.streams import SCENARIOS


def run_length(detector, confusion, alarms, seed):
    random = np.random.default_rng(seed)
    edges = np.cumsum(np.ravel(confusion) / np.sum(confusion))[:-1]
    classes = len(confusion)
    events = found = 0
    while found < alarms:
        cells = np.searchsorted(edges, random.random(500_000), side="right")
        found += len(detector.update_many(cells // classes, cells % classes))
        events += cells.size
    return events / found


@pytest.mark.parametrize("decay", [0.8, 0.9, 0.98, (0.9, 0.98)])
@pytest.mark.parametrize("confusion", [[[45, 5], [5, 45]], [[30, 20], [20, 30]], [[85, 5], [2, 8]]])
def test_the_run_length_asked_for_is_kept(confusion, decay):
    arl, alarms = 10_000, 1_000
    detector = fr.LFR(decay, arl=arl)
    measured = run_length(detector, confusion, alarms, seed=5)
    # Run lengths are about exponential: a mean of 1,000 has a standard error of 3 %. Alarms of recall and precision
    # that coincide, and rates near 1 that cannot rise, make it longer; several decays, which often alarm together, too.
    assert 0.9 * arl <= measured <= (2.5 if isinstance(decay, float) else 3.5) * arl


def test_the_expected_run_length_is_a_lower_estimate():
    for confusion in ([[40, 10], [10, 40]], [[65, 15], [5, 15]]):
        detector = fr.LFR(detect=1e-4)
        expected = fr.expected_run_length(detector, confusion)
        measured = run_length(detector, confusion, 1_000, seed=6)
        assert 0.9 * expected <= measured <= 2 * expected


def test_levels_and_run_lengths_are_inverse_to_each_other():
    found = fr.design(50_000, 0.9)
    assert min(found.run_lengths.values()) == pytest.approx(
        50_000, rel=0.1
    )  # the law has atoms: levels near by give one and the same bound
    worst = min(found.run_lengths, key=found.run_lengths.get)
    detector = fr.LFR(0.9, detect=found.detect)
    again = fr.expected_run_length(detector, [[worst, 1 - worst], [1 - worst, worst]])
    # The same chain, but with the bounds of the table, which are rounded outwards.
    assert 50_000 <= again <= 60_000


def test_one_side_gets_twice_the_level():
    both, down = fr.design(10_000, 0.98).detect, fr.design(10_000, 0.98, "down").detect
    assert 1.5 * both < down < 2.5 * both


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_expected_delay_is_what_is_seen(name):
    scenario = SCENARIOS[name]
    detector = fr.LFR(0.9, 0.01, 1e-4)
    delay = fr.expected_delay(detector, scenario.before, scenario.after)
    streams = 400
    hits = 0
    for seed in range(streams):
        detector.reset()
        hits += score(detector.update_many(*scenario.stream(seed)), changes=5_000, within=200).hits
    expected = delay.within(200)
    # Four standard errors, and 0.06 for what the model leaves out: precisions that alarm where recalls do not, and
    # restarts by false alarms before the change.
    assert abs(hits / streams - expected) <= 0.06 + 4 * math.sqrt(expected * (1 - expected) / streams + 1e-6)


def test_a_larger_change_is_found_sooner():
    detector = fr.LFR()
    medians = [fr.expected_delay(detector, [[45, 5], [5, 45]], [[45 - m, 5 + m], [5, 45]]).median for m in (10, 20, 30)]
    assert medians == sorted(medians, reverse=True)


def test_no_change_is_found_at_the_rate_of_false_alarms():
    detector = fr.LFR(detect=1e-4)
    stable = [[40, 10], [10, 40]]
    found = fr.expected_delay(detector, stable, stable, horizon=2_000).within(2_000)
    assert found == pytest.approx(1 - math.exp(-2_000 / fr.expected_run_length(detector, stable)), rel=0.6)


def test_a_detector_with_a_budget_survives_a_round_trip():
    detector = fr.LFR(arl=10_000)
    assert fr.LFR.from_bytes(detector.to_bytes()).to_bytes() == detector.to_bytes()
    assert "arl=10000" in repr(detector)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fr.LFR(arl=1_000, detect=1e-5), "arl 1000 and detect 1e-05: one of them says the other"),
        (lambda: fr.LFR(arl=1_000, correction="bonferroni"), "it takes no correction 'bonferroni'"),
        (lambda: fr.LFR(arl=50), "arl 50 is not a number of events, at least 100"),
        (lambda: fr.LFR(arl="monthly"), "arl 'monthly' is not a number of events"),
        (lambda: fr.design(math.nan), "arl nan is not a number of events"),
        (lambda: fr.design(1e12), "the detection level for this arl, .* is not in"),
        (lambda: fr.expected_run_length(fr.LFR(), [[1, 2, 3]]), r"has shape \(1, 3\), not \(2, 2\)"),
        (lambda: fr.expected_run_length(fr.LFR(), [[1, -2], [1, 1]]), "something other than probabilities or counts"),
        (lambda: fr.expected_delay(fr.LFR(), np.eye(2), np.eye(2), horizon=0), "horizon 0 is not at least one event"),
    ],
)
def test_bad_budgets_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
