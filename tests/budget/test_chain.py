"""The law of R on its points, against laws that are known."""

import math
from itertools import product

import numpy as np
import pytest

import fourrates as fr
from fourrates.budget import chain


def test_the_points_ascend_from_0_to_1_and_mirror():
    points = chain.points()
    assert points[0] == 0.0
    assert points[-1] == 1.0
    assert (np.diff(points) > 0).all()
    np.testing.assert_allclose(points + points[::-1], 1.0, atol=1e-15)


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.99])
@pytest.mark.parametrize("decay", [0.6, 0.9, 0.98])
def test_the_settled_law_has_the_mean_and_the_variance_of_R(decay, rate):
    law, at = chain.settled(decay, rate), chain.points()
    assert law.sum() == pytest.approx(1.0)
    assert law @ at == pytest.approx(rate, rel=1e-6)
    variance = rate * (1 - rate) * (1 - decay) / (1 + decay)
    assert law @ (at - rate) ** 2 == pytest.approx(variance, rel=0.005)


def test_a_fast_decay_has_the_hazard_that_enumeration_gives():
    # With a decay of 0.3 the last twelve bits are all there is to know: 0.3**12 < 1e-6.
    decay, rate, within = 0.3, 0.8, (0.05, 2.0)
    patterns = np.array([*product((0, 1), repeat=12)])  # the newest bit last
    values = patterns @ ((1 - decay) * decay ** np.arange(11, -1, -1.0)) + 0.5 * decay**12
    chance = rate ** patterns.sum(1) * (1 - rate) ** (12 - patterns.sum(1))
    for _ in range(200):
        left = chance.copy()
        chance = np.zeros_like(chance)
        for bit, weight in ((0, 1 - rate), (1, rate)):
            np.add.at(chance, (np.arange(4096) * 2 + bit) % 4096, left * weight)
        gone = chance[values < within[0]].sum()
        chance[values < within[0]] = 0.0
        hazard = gone / (gone + chance.sum())
        chance /= chance.sum()
    assert chain.hazard(decay, rate, within) == pytest.approx(hazard, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("decay", [0.5, 0.9, 0.98])
def test_bounds_without_a_table_are_those_of_the_table(decay, rate):
    (_, lower, upper), *_ = fr.LFR(decay, detect=1e-4).asymptotic_bounds("tpr", rate)
    # Two steps of the table, for what each of the two rounds on its own.
    assert chain.asymptotic_bounds(decay, rate, 1e-4, "both") == pytest.approx((lower, upper), abs=2 / 4000 + 1e-9)


def test_a_side_that_is_not_watched_is_never_left():
    lower, upper = chain.asymptotic_bounds(0.9, 0.8, 1e-3, "up")
    assert lower < 0
    assert chain.hazard(0.9, 0.8, (lower, 2.0)) == 0.0
    assert upper < 1


def test_survival_beyond_what_is_carried_goes_on_at_the_settled_hazard():
    within = 0.4, 2.0
    long = chain.survival(0.8, 0.8, 0.7, within, 400)
    mass = chain.settled(0.8, 0.8).copy()
    carried = 1.0 - np.cumsum(chain.run(0.8, 0.7, within, mass, 400))
    assert long.size == 401
    assert long[0] == 1.0
    np.testing.assert_allclose(long[1:], carried, rtol=1e-3, atol=1e-12)
    assert math.isclose(long[-1], mass.sum(), rel_tol=1e-3)
