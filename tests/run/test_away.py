"""A drift that leads back is told as a recovery, one that leads half the way is not."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.drift import Share, Unmoved
from fourrates.run.away import Recoveries, is_back, rates_away


def told_back(seed, rate, fallen, back, positives):
    """Whether a recovery is told of a tpr that falls for 600 events; None if its way back is not found."""
    random, edges = np.random.default_rng(seed), (3000, 3600)
    y_true = random.random(6600) < positives
    when = np.searchsorted(edges, np.arange(6600), "right")
    right = random.random(6600) < np.where(y_true, np.array([rate, fallen, back])[when], 0.95)
    recoveries = Recoveries()
    drifts = fr.FourRates(arl=100_000).update_many(y_true, y_true ^ ~right)
    told = [recoveries.recognize("shop", drift) for drift in drifts if drift.at >= edges[0]]
    return any(isinstance(one, fr.Recovery) for one in told) if len(told) > 1 else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("back", "least", "most"),
    # On 400 other streams .91 and .15. Three standard errors of the 119 and 64 here are .08 and .13.
    [(0.95, 0.83, 1.0), (0.75, 0.0, 0.28)],
)
def test_most_rates_that_are_back_are_told_so_and_few_that_are_half_the_way_are(back, least, most):
    told = [told_back(seed, 0.95, 0.5, back, 0.15) for seed in range(120)]
    known = [one for one in told if one is not None]
    assert len(known) > 60
    assert least <= np.mean(known) <= most


def told_of_both(seed, rates, back, positives):
    """Whether a recovery is told where both recalls fell, and these come back to these levels."""
    random, edges = np.random.default_rng(seed), (6000, 9000)
    y_true = random.random(15_000) < positives
    when = np.searchsorted(edges, np.arange(15_000), "right")
    level = np.where(y_true, np.array([*rates, back[1]])[when], np.array([*rates, back[0]])[when])
    recoveries = Recoveries()
    drifts = fr.FourRates(arl=100_000).update_many(y_true, y_true ^ (random.random(15_000) >= level))
    return any(isinstance(recoveries.recognize("shop", drift), fr.Recovery) for drift in drifts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rates", "back", "positives", "least", "most"),
    # On 200 other streams .86, .04 and .17; .85, .09 and .01. Three standard errors of the 60 here are .14 and less.
    [
        ((0.85, 0.6), (0.85, 0.85), 0.3, 0.7, 1.0),
        ((0.85, 0.6), (0.6, 0.85), 0.3, 0.0, 0.12),
        ((0.85, 0.6), (0.85, 0.6), 0.3, 0.0, 0.32),
        ((0.98, 0.8), (0.98, 0.98), 0.7, 0.7, 1.0),
        ((0.98, 0.8), (0.8, 0.98), 0.7, 0.0, 0.2),
        ((0.98, 0.8), (0.98, 0.8), 0.7, 0.0, 0.05),
    ],
)
def test_where_both_recalls_fell_a_recovery_is_told_when_both_are_back(rates, back, positives, least, most):
    assert least <= np.mean([told_of_both(seed, rates, back, positives) for seed in range(60)]) <= most


def seen(value, n):
    return Share.of(value * n, n)


def fall(rate, before, after, unmoved):
    """A drift in which a rate fell, and what was seen of another one: before, and since in few observations."""
    change = fr.RateChange(rate, "down", 0, 0, None, 1, None, seen(before, 3000), seen(after, 40))
    return fr.Drift(0, 0, (change,), (), unmoved=(Unmoved(*unmoved),))


@pytest.mark.parametrize(
    ("unmoved", "away"),
    [
        # Low for 3,000 observations, it does not come back in two.
        (("tpr", seen(0.5, 3000), seen(1.0, 2)), {"tpr": (0.9, 0.5), "tnr": (0.95, 0.5)}),
        # It came back unnoticed, or never was away: no reason to call the fall of another rate a recovery.
        (("tpr", seen(0.9, 3000), seen(0.9, 20)), {"tpr": (0.9, 0.9), "tnr": (0.95, 0.5)}),
    ],
)
def test_a_fall_leads_nowhere_but_away(unmoved, away):
    found = rates_away(fall("tnr", 0.95, 0.5, unmoved), {"tpr": (0.9, 0.5), "tnr": (0.95, 0.95)})
    assert {rate: pytest.approx(levels) for rate, levels in away.items()} == found


def test_a_rate_that_rose_meanwhile_does_not_keep_another_from_being_back():
    back = fr.RateChange("tpr", "up", 0, 0, None, 1, None, seen(0.6, 900), seen(0.9, 80))
    drift = fr.Drift(0, 0, (back,), (), unmoved=(Unmoved("tnr", seen(0.99, 900), seen(0.99, 80)),))
    assert rates_away(drift, {"tpr": (0.9, 0.6), "tnr": (0.9, 0.99)}) == {}


@pytest.mark.parametrize(
    ("now", "back"),
    [
        ((20, 20), True),  # all of them right
        ((17, 20), True),  # within what 20 observations of a rate of .95 may be
        ((70, 100), False),  # nearer to where it went
        ((80, 100), False),  # nearer to where it was, and significantly short of it
        ((0, 5), False),
    ],
)
def test_a_rate_is_back_if_it_is_near_and_not_significantly_short(now, back):
    assert is_back(Share.of(*now), 0.95, 0.5) is back


def test_a_rate_that_was_always_right_can_be_back_with_an_error():
    assert is_back(Share.of(29, 30), 1.0, 0.5)
    assert not is_back(Share.of(25, 30), 1.0, 0.5)
