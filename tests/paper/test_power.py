"""Powers without simulation, held against simulation."""

import numpy as np
import pytest
from scipy.stats import binom

from paper.power import LEVEL, binomial, naive_power, power

RUNS = 100_000


def _decayed(random, p, q, lag):
    """R just before the change and `lag` observations after it."""
    before = np.full(RUNS, 0.5)
    for _ in range(150):  # 0.9 ** 150 is 1e-7
        before = 0.9 * before + 0.1 * (random.random(RUNS) < p)
    after = before
    for _ in range(lag):
        after = 0.9 * after + 0.1 * (random.random(RUNS) < q)
    return before, after


@pytest.mark.parametrize(("p", "q", "lag"), [(0.9, 0.5, 10), (0.9, 0.7, 40), (0.3, 0.6, 20), (0.5, 0.5, 30)])
def test_the_power_of_R_is_that_of_simulated_streams(p, q, lag):
    before, after = _decayed(np.random.default_rng(7), p, q, lag)
    found = power(p, (q,), lags=lag).linear[-1, 0]
    # The bounds are quantiles of the same many simulated values. A bound at the 0.01 quantile is known to about
    # sqrt(0.01 / RUNS) = 0.0003 in probability, which moves the power by up to density ratio times that; four errors of
    # each, and a ratio of at most 5 in these cases.
    low, high = np.quantile(before, [LEVEL, 1 - LEVEL])
    simulated = np.mean((after < low) | (after > high))
    assert abs(found - simulated) < 4 * np.sqrt(simulated * (1 - simulated) / RUNS) + 4 * 5 * 0.0003


@pytest.mark.parametrize(("p", "q", "lag"), [(0.9, 0.5, 10), (0.9, 0.7, 200), (0.2, 0.6, 60)])
def test_the_power_of_P_hat_is_that_of_simulated_streams(p, q, lag):
    random = np.random.default_rng(8)
    ones = random.binomial(1000, p, RUNS) + random.binomial(lag, q, RUNS)
    # The bounds are those values with at most the level outside.
    low, high = binom.ppf(LEVEL, 1000, p) / 1000, binom.isf(LEVEL, 1000, p) / 1000
    share = ones / (1000 + lag)
    simulated = np.mean((share < low - 1e-12) | (share > high + 1e-12))
    found = power(p, (q,), lags=lag).naive[-1, 0]
    assert abs(found - simulated) < 4 * np.sqrt(max(simulated * (1 - simulated), 1e-4) / RUNS)


def test_without_a_change_the_power_is_the_level_of_both_sides():
    found = power(0.9, (0.9,), lags=50)
    # R has atoms so small that the level is met but for the lattice. P-hat is discrete: each bound may be off by one of
    # its atoms, of 0.003 there, and with 50 more observations its spread is smaller by 2.5 %.
    assert found.linear[:, 0] == pytest.approx(2 * LEVEL, abs=0.003)
    assert found.naive[:, 0] == pytest.approx(2 * LEVEL, abs=2 * 0.003)


def test_flipping_right_and_wrong_leaves_the_power():
    one, other = power(0.9, (0.6,), lags=30), power(0.1, (0.4,), lags=30)
    assert one.linear == pytest.approx(other.linear, abs=1e-9)
    assert one.naive == pytest.approx(other.naive, abs=1e-9)


def test_R_is_ahead_at_first_and_P_hat_in_the_end():
    found = power(0.9, (0.5, 0.6, 0.7, 0.8))
    assert (found.difference[9] > 0).all()
    assert (found.difference[-1] < 0).all()


def test_the_chances_of_a_binomial_are_those_of_scipy():
    assert binomial(1000, 0.3) == pytest.approx(binom.pmf(np.arange(1001), 1000, 0.3), abs=1e-12)


def test_the_naive_power_rises_to_one():
    assert naive_power(0.9, (0.1,))[-1, 0] == pytest.approx(1, abs=1e-12)
