"""The decay that finds a change soonest."""

import math

import numpy as np
import pytest

import fourrates as fr
from fourrates.budget.decay import best_decay_from_stream
from fourrates.budget.simulation import simulated_delay
from fourrates.streams import SCENARIOS, Scenario

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


@pytest.mark.slow
def test_a_stream_with_a_known_change_teaches_the_same_decay():
    scenario = SCENARIOS["Imbalance2"]
    given = fr.budget.best_decay(scenario.before, scenario.after, ARL)
    learned = best_decay_from_stream(*scenario.stream(seed=3), changes=[5_000], arl=ARL)
    # The rates of the stream are off by a standard error of 2 %, and the curve is flat near its least.
    assert given.delays[learned.decay] <= 1.05 * given.delay


@pytest.mark.slow
def test_several_changes_and_labels_of_any_kind():
    names = np.array(["ham", "spam", "egg"])
    one = np.array([[30, 2, 2], [2, 30, 2], [2, 2, 28]]) / 100
    two = np.array([[30, 2, 2], [2, 30, 2], [15, 10, 7]]) / 100
    parts = [Scenario(one, two).stream(seed=1), Scenario(one, two).stream(seed=2)]
    y_true, y_pred = (names[np.concatenate(side)] for side in zip(*parts, strict=True))
    best = best_decay_from_stream(y_true, y_pred, [5_000, 10_000, 15_000], ARL, labels=names.tolist())
    assert math.isfinite(best.delay)
    assert best.decay < 0.98


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fr.budget.best_decay(SOUND, SOUND, 50), "arl 50 is not a number of events"),
        (lambda: fr.budget.best_decay(SOUND, np.eye(3), ARL), r"has shape \(3, 3\), not \(2, 2\)"),
        (lambda: fr.budget.best_decay(SOUND, SOUND, ARL, decays=[]), "no decay is given"),
        (lambda: fr.budget.best_decay(SOUND, SOUND, ARL, horizon=0), "horizon 0"),
        (lambda: best_decay_from_stream([0, 1], [0, 1], [], ARL), "no change is given"),
        (lambda: best_decay_from_stream([0, 1], [0, 1], [2], ARL), "must ascend between 0 and 2"),
        (lambda: best_decay_from_stream([0, 1], [0], [1], ARL), "y_true has 2 events, y_pred has 1"),
        (lambda: best_decay_from_stream([0, 7], [0, 1], [1], ARL), "position 1: 7 in column"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
