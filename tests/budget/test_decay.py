"""The decay that finds a change soonest."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.budget.simulation import simulated_delay

SOUND = [[45, 5], [5, 45]]
ARL = 10_000


@pytest.mark.slow
def test_the_smaller_the_change_the_longer_the_memory():
    best = [fr.budget.best_decay(SOUND, [[45 - m, 5 + m], [5, 45]], ARL) for m in (30, 10, 4)]
    assert [one.decay for one in best] == sorted(one.decay for one in best)
    assert best[0].decay <= 0.85 < 0.97 <= best[-1].decay


@pytest.mark.slow
def test_the_best_decay_is_the_least_of_its_curve():
    best = fr.budget.best_decay(SOUND, [[35, 15], [5, 45]], ARL)
    assert best.delay == best.delays[best.decay] == min(best.delays.values())


@pytest.mark.slow
def test_simulation_ranks_the_decays_the_same_way():
    after = [[39, 11], [5, 45]]
    best = fr.budget.best_decay(SOUND, after, ARL, decays=(0.7, 0.9, 0.98))
    for decay, delay in best.delays.items():
        seen = simulated_delay(fr.LFR(decay, arl=ARL), SOUND, after, streams=100, history=3_000, horizon=3_000)
        low, high = seen.median_between  # 95 %; the rest for restarts and for what the model leaves out
        assert 0.85 * low <= delay <= 1.2 * high
    assert best.decay == 0.98


@pytest.mark.slow
def test_the_expected_delay_is_that_of_the_detector_with_this_budget():
    best = fr.budget.best_decay(SOUND, [[25, 25], [5, 45]], ARL, decays=[0.9])
    assert best.delay == pytest.approx(
        fr.budget.expected_delay(fr.LFR(0.9, arl=ARL), SOUND, [[25, 25], [5, 45]]).median, rel=0.05
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fr.budget.best_decay(SOUND, SOUND, 50), "arl 50 is not a number of events"),
        (lambda: fr.budget.best_decay(SOUND, np.eye(3), ARL), r"has shape \(3, 3\), not \(2, 2\)"),
        (lambda: fr.budget.best_decay(SOUND, SOUND, ARL, decays=[]), "no decay is given"),
        (lambda: fr.budget.best_decay(SOUND, SOUND, ARL, horizon=0), "horizon 0"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
