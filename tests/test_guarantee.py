"""What the level promises, measured: false alarms per step and side at every sample size, and the power it leaves."""

import math

import numpy as np
import pytest

import fourrates as fr
from fourrates import null

SIZES = (1, 2, 5, 10, 30, 60, 120, 500, 5000)
LEVEL = 1e-3
CHUNK = 20_000  # streams at a time: they stay in the processor's cache


def outside(decay, rate, streams, seed, kind="exact"):
    """Share of streams whose R lies below and above its bounds at LEVEL, by n."""
    table = null.table(decay, (1e-2, LEVEL), kind)
    random = np.random.default_rng(seed)
    found = {n: np.zeros(2) for n in SIZES}
    for _ in range(streams // CHUNK):
        # Small n are visited by the same streams on their way; for a large n only its last bits are drawn one by one.
        for sizes in ([n for n in SIZES if n <= 120], [500], [5000]):
            top = sizes[-1]
            drawn = top if len(sizes) > 1 else min(top, math.ceil(math.log(1e-5) / math.log(decay)))
            ones = random.binomial(top - drawn, rate, CHUNK) if top > drawn else np.zeros(CHUNK, np.int64)
            statistic = np.full(CHUNK, 0.5 if top == drawn else rate, np.float64)
            for n in range(top - drawn + 1, top + 1):
                bit = random.random(CHUNK, np.float32) < np.float32(rate)
                statistic *= decay
                statistic += (1 - decay) * bit
                ones += bit
                if n in sizes:
                    least = ones.min()
                    counts = range(least, ones.max() + 1)
                    lower = np.array([table.lower(1, n, k) for k in counts])[ones - least]
                    upper = np.array([table.upper(1, n, k) for k in counts])[ones - least]
                    found[n] += (statistic < lower).sum(), (statistic > upper).sum()
    return {n: counts / streams for n, counts in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.9, 0.98])
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.9, 0.95, 0.99, 1.0])
def test_false_alarms_stay_within_the_level_at_every_sample_size(rate, decay):
    streams = 200_000
    error = math.sqrt(LEVEL / streams)  # 7 % of the level
    for n, sides in outside(decay, rate, streams, seed=11).items():
        for share in sides:
            assert share <= LEVEL + 4 * error, (n, sides)


@pytest.mark.slow
def test_the_level_is_used_up_where_there_is_enough_to_see():
    # At least 0.8 of the level; the standard error of the measured share is 3.5 % of it.
    for rate in (0.5, 0.8):
        measured = outside(0.9, rate, 800_000, seed=12)
        for n in (60, 120, 500, 5000):
            assert min(measured[n]) >= 0.8 * LEVEL, (rate, n, measured[n])


@pytest.mark.slow
def test_the_plugin_null_leaves_most_of_the_level_unused_while_n_is_small():
    measured = outside(0.9, 0.8, 200_000, seed=13, kind="plugin")
    assert max(measured[30]) == 0.0
    assert max(measured[60]) <= 0.2e-3


def found_in_time(before, kind, streams=20_000, seed=21):
    """Share of streams in which a fall from 0.9 to 0.6 is found within 50 observations of one rate."""
    random = np.random.default_rng(seed)
    bits = random.random((streams, before + 50)) < np.where(np.arange(before + 50) < before, 0.9, 0.6)
    table = null.table(0.9, (1e-4,), kind)
    found = np.zeros(streams, bool)
    quiet = np.ones(streams, bool)  # an alarm before the change restarts the detector and is no hit
    statistic, ones = np.full(streams, 0.5), np.zeros(streams, np.int64)
    for n in range(1, before + 51):
        statistic = 0.9 * statistic + 0.1 * bits[:, n - 1]
        ones += bits[:, n - 1]
        lower = np.array([table.lower(0, n, k) for k in range(n + 1)])[ones]
        crossed = statistic < lower
        if n <= before:
            quiet &= ~crossed
        else:
            found |= crossed
    return (found & quiet).mean()


# Standard error of each share at 20,000 streams: 0.35 % or less.
@pytest.mark.parametrize(("before", "exact", "plugin"), [(30, 0.24, 0.02), (60, 0.46, 0.20)])
def test_a_fall_soon_after_the_start_is_found(before, exact, plugin):
    assert found_in_time(before, "exact") >= exact
    assert found_in_time(before, "plugin") <= plugin


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y_true", "y_pred", "alarms"),
    [
        pytest.param("mixed", "right", 0, id="a perfect classifier"),
        pytest.param("mixed", "wrong", 0, id="a perfectly wrong one"),
        pytest.param("one", "right", 0, id="one class, always right"),
        pytest.param("one", "wrong", 0, id="one class, always wrong"),
        # ppv is a fair coin: 10**6 steps, two sides at 1e-5, at most 20 alarms on average.
        pytest.param("mixed", "one", 20 + 4 * math.sqrt(20), id="one prediction for all"),
    ],
)
@pytest.mark.parametrize("kind", null.NULLS)
def test_nothing_happens_where_nothing_can(y_true, y_pred, alarms, kind):
    random = np.random.default_rng(31)
    truth = random.random(1_000_000) < 0.5 if y_true == "mixed" else np.ones(1_000_000, bool)
    pred = {"right": truth, "wrong": ~truth, "one": np.ones_like(truth)}[y_pred]
    # The plug-in bounds are as wide as the exact ones here.
    assert len(fr.LFR(null=kind).update_many(truth, pred)) <= alarms


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.9, 0.98])
def test_rare_positives_alarm_no_more_than_the_level_allows(decay):
    random = np.random.default_rng(32)
    size = 1_000_000
    y_true = random.random(size) < 0.02
    y_pred = np.where(random.random(size) < np.where(y_true, 0.75, 0.99), y_true, ~y_true)
    drifts = fr.LFR(decay=decay).update_many(y_true, y_pred)
    # Two tests of two sides an event: 40 at most on average, Poisson at worst.
    assert len(drifts) <= 40 + 4 * math.sqrt(40)


def test_a_class_that_never_occurs_never_alarms():
    random = np.random.default_rng(33)
    y_true = random.integers(0, 2, 300_000)
    y_pred = np.where(random.random(y_true.size) < 0.9, y_true, 1 - y_true)
    detector = fr.LFR(labels=(0, 1, 2))
    detector.update_many(y_true, y_pred)
    assert detector.rates["recall:2"].n == detector.rates["precision:2"].n == 0
    assert detector.rates["recall:2"].statistic == 0.5
