"""The exact null against brute force, certified enclosures and simulation."""

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

from fourrates import null
from paper.algorithm2 import monte_carlo

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)
OUTWARD = 0.001  # the most a bound may lie outside the exact one


def arrangements(n, k, decay):
    """R of every arrangement of k ones among n, sorted."""
    weights = (1 - decay) * decay ** np.arange(n)
    start = 0.5 * decay**n
    if k == 0:
        return np.array([start])
    return np.sort([start + weights[list(chosen)].sum() for chosen in combinations(range(n), k)])


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("n", range(17))
def test_bounds_agree_with_all_arrangements_up_to_sixteen(n, decay):
    table = null.table(decay, LEVELS)
    for k in range(n + 1):
        values = arrangements(n, k, decay)
        for i, level in enumerate(LEVELS):
            # With r arrangements at most level * C(n, k) may lie strictly below (above) the bound.
            r = math.floor(level * values.size + 1e-9)
            lower, upper = table.lower(i, n, k), table.upper(i, n, k)
            assert values[r] - OUTWARD <= lower <= values[r]
            assert values[-1 - r] <= upper <= values[-1 - r] + OUTWARD


@pytest.mark.slow
def test_bounds_agree_with_certified_enclosures():
    reference = json.loads((Path(__file__).parent / "reference" / "bounds-0.9.json").read_text())
    levels = sorted({row["level"] for row in reference}, reverse=True)
    table = null.table(0.9, levels)
    for row in reference:
        i = levels.index(row["level"])
        lower, upper = table.lower(i, row["n"], row["k"]), table.upper(i, row["n"], row["k"])
        assert row["lower"][0] - OUTWARD <= lower <= row["lower"][1], row
        assert row["upper"][0] <= upper <= row["upper"][1] + OUTWARD, row


def enclosures(decay, window, points):
    """Upper and lower envelopes of P(R < x | k ones among `window`) at i / points, rounded surely, one way each.

    The textbook recursion on a plain grid: slow, coarse, and certain. It shares no idea with the lattice it checks.
    """
    grid = np.arange(points + 1)
    sources = grid / decay, (grid - (1 - decay) * points) / decay  # where x comes from if the newest bit is 0, is 1
    envelopes = [(grid > points / 2).astype(float)[:, None]] * 2

    def moved(law, source, outward):
        index = np.ceil(source - 1e-9) if outward else np.floor(source + 1e-9)
        index = index.astype(np.int64)
        found = law[np.clip(index, 0, points)]
        found[index < 0], found[index > points] = 0.0, 1.0
        return found

    for n in range(1, window + 1):
        share = np.arange(n + 1) / n
        for side, outward in enumerate((True, False)):
            law = np.zeros((points + 1, n + 1))
            law[:, :n] += (1 - share[:n]) * moved(envelopes[side], sources[0], outward)
            law[:, 1:] += share[1:] * moved(envelopes[side], sources[1], outward)
            envelopes[side] = law
    return [law.T for law in envelopes]


def log_choose(n, k):
    """Of how many ways there are to take k out of n, -inf where there are none; off by some 1e-10 at 30,000."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


@pytest.mark.slow
def test_bounds_agree_with_an_independent_grid_at_random_counts():
    decay, window, points = 0.9, 105, 10_000
    above, below = enclosures(decay, window, points)
    levels = (1e-2, 1e-4, 1e-6)
    table = null.table(decay, levels)
    random = np.random.default_rng(1)
    cases = []
    for i in range(1500):
        n = int(math.exp(random.uniform(math.log(window), math.log(30_000))))
        # Half of them with any share of zeros, half with few of them, where the law has atoms.
        cases.append((n, int(n ** random.uniform(0, 1)) if i % 2 else int(random.integers(0, n + 1))))
    n, zeros = np.array(cases).T[:, :, None]
    drawn = np.arange(window, -1, -1)  # zeros in the window: hypergeometric
    weights = np.exp(log_choose(zeros, drawn) + log_choose(n - zeros, window - drawn) - log_choose(n, window))
    outward = []
    for part in np.array_split(np.arange(1500), 10):  # laws of all at once would fill the memory
        laws = zip(weights[part] @ above, weights[part] @ below, strict=True)
        for (n, zeros), (high, low) in zip((cases[i] for i in part), laws, strict=True):
            for j, level in enumerate(levels):
                # The exact bound lies between these; bits older than the window are worth decay**window.
                least = (np.searchsorted(high, level * (1 - 1e-9), side="right") - 1) / points - decay**window
                most = np.searchsorted(low, level * (1 + 1e-9), side="right") / points + decay**window
                bound = table.lower(j, n, n - zeros)
                assert bound <= most, (n, zeros, level)
                outward.append(least - bound)
    assert np.median(outward) <= 0.0005
    assert np.quantile(outward, 0.95) <= 0.0015
    assert max(outward) <= 0.015  # a few zeros, a small level: one atom further out


def sampled(n, k, decay, samples, random):
    """R of random arrangements of k ones among n, drawn from the newest bit backwards."""
    ones = np.full(samples, k, np.float32)
    value = np.zeros(samples, np.float32)
    back = 0
    while back < n and decay**back > 1e-4:
        bit = random.random(samples, np.float32) * np.float32(n - back) < ones
        value += np.float32((1 - decay) * decay**back) * bit
        ones -= bit
        back += 1
    # Bits older than that, worth 1e-4 together, count with their mean: their deviations are below 1e-5.
    older = ones / np.float32(max(n - back, 1)) * np.float32(decay**back - decay**n)
    return value + older + np.float32(0.5 * decay**n)


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.9, 0.98])
@pytest.mark.parametrize(
    ("n", "share", "level"),
    [*((n, share, 1e-2) for n in (50, 100, 1000) for share in (0.5, 0.8, 0.95)), (100, 0.8, 1e-3)],
)
def test_bounds_agree_with_simulated_arrangements(n, share, level, decay):
    """400,000 at level 0.01, four million at 0.001: as many beyond the bound, so the same precision."""
    k, total, chunk = round(share * n), round(4_000 / level), 50_000
    table = null.table(decay, (1e-2, 1e-3))
    lower, upper = (bound(table.levels.index(level), n, k) for bound in (table.lower, table.upper))
    random = np.random.default_rng(n)
    # Counts below the bound, and below the bound moved inwards by the slack that is allowed.
    outside, moved = np.zeros(2), np.zeros(2)
    for _ in range(total // chunk):
        value = sampled(n, k, decay, chunk, random)
        outside += [(value < lower).sum(), (value > upper).sum()]
        moved += [(value <= lower + OUTWARD).sum(), (value >= upper - OUTWARD).sum()]
    # The count at the exact level has standard deviation 63 around 4,000: four of them are 6 %.
    limit = 4 * math.sqrt(level * total)
    assert (outside <= level * total + limit).all()
    assert (moved >= level * total - limit).all()


@pytest.mark.slow
@pytest.mark.parametrize("decay", [1e-300, 1e-5, 0.3, 0.53, 0.55, 0.618, 0.7, 0.9])
def test_far_rows_fall_along_the_statistic(decay):
    # A bound is found by bisection, a statistic is tested by one look: both must agree.
    far = null.table(decay, (0.49, 0.3, 0.01, 1e-5)).far
    assert (np.diff(far, axis=2) <= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("decay", "levels"), [(0.98, (1e-2, 1e-3)), (0.99, (1e-2, 1e-6)), (0.995, (1e-2,))])
def test_slow_decays_use_their_level_soon_after_the_start(decay, levels):
    # 200,000 arrangements at level 0.01: the standard error is 2 % of the level. Such tables take seconds: where other
    # tests ask for one, it is theirs.
    n, k, level = 40, 32, levels[0]
    value = sampled(n, k, decay, 200_000, np.random.default_rng(3))
    share = (value < null.table(decay, levels).lower(0, n, k)).mean()
    assert 0.8 * level <= share <= 1.1 * level


@pytest.mark.parametrize("null_name", ["exact", "plugin"])
def test_bounds_are_monotone_in_the_counts(null_name):
    table = null.table(0.9, (0.01, 1e-5), null_name)
    for level in (0, 1):
        for n in (5, 16, 17, 40, 94, 95, 300, 5000, 10**6, 10**9):
            ones = np.unique(np.linspace(0, n, min(n, 200) + 1).astype(np.int64))
            lower = [table.lower(level, n, int(k)) for k in ones]
            # A bound on the lattice may be off by the rounding of its neighbour, a few 1e-5.
            assert (np.diff(lower) >= -1e-4).all()


@pytest.mark.slow
def test_the_smaller_level_has_the_wider_bounds():
    levels = (0.4, 0.1, 1e-2, 1e-5, 1e-9)
    table = null.table(0.9, levels)
    for n, k in [(1, 1), (10, 7), (50, 45), (94, 80), (95, 80), (1000, 900), (10**9, 10**9 - 10**6)]:
        lower = [table.lower(i, n, k) for i in range(len(levels))]
        upper = [table.upper(i, n, k) for i in range(len(levels))]
        assert lower == sorted(lower, reverse=True)
        assert upper == sorted(upper)


def test_bounds_mirror_when_the_bits_are_flipped():
    table = null.table(0.9, (1e-3,))
    for n, k in [(3, 1), (12, 12), (60, 50), (2000, 1999)]:
        assert table.upper(0, n, k) == 1.0 - table.lower(0, n, n - k)


@pytest.mark.slow
@pytest.mark.parametrize("null_name", ["exact", "plugin"])
@pytest.mark.parametrize("decay", [1e-9, 0.01, 0.3, 0.61803398875, 0.9])
def test_an_atom_never_lies_outside_its_own_bounds(decay, null_name):
    # Given that all bits are equal R takes one value only. A bound rounded the wrong way would alarm for ever.
    table = null.table(decay, (0.4, 1e-9), null_name)
    statistic = 0.5
    for n in range(1, 1000):
        statistic = decay * statistic + (1 - decay)
        for i in (0, 1):
            assert table.lower(i, n, n) <= statistic <= table.upper(i, n, n)


@pytest.mark.slow
def test_the_plugin_null_is_the_binomial_law():
    # Independent bits, simulated: the share below the bound against the level, within 4 standard errors.
    decay, level, samples = 0.9, 1e-2, 400_000
    random = np.random.default_rng(5)
    for n, k in [(30, 27), (60, 48), (200, 100)]:
        bound = null.bounds(n, k, level, decay, "plugin").lower
        value = np.full(samples, 0.5)
        for _ in range(n):
            value = decay * value + (1 - decay) * (random.random(samples) < k / n)
        limit = 4 * math.sqrt(level / samples)
        assert (value < bound).mean() <= level + limit
        assert (value <= bound + OUTWARD).mean() >= level - limit


@pytest.mark.slow
def test_monte_carlo_agrees_with_the_plugin_null():
    # The 1 % quantile of 10,000 draws lies between their ranks 60 and 140 but for 4 standard errors.
    table = null.table(0.9, (0.01,), "plugin")
    for n, k in [(10, 8), (50, 40), (94, 90), (500, 400)]:
        wide = null.bounds(n, k, 0.006, 0.9, "plugin").lower - OUTWARD
        narrow = null.bounds(n, k, 0.014, 0.9, "plugin").lower + OUTWARD
        assert wide <= monte_carlo(n, k, 0.01).lower <= narrow
        assert wide <= table.lower(0, n, k) <= narrow


def test_algorithm_2_as_printed_alarms_at_the_first_step():
    # R(1) is 0.45 or 0.55. With the pseudo-counts the paper looks N = 3 up, where its table ends at 0.271.
    printed = monte_carlo(3, 2, 1e-5, start=0.0)
    assert printed.upper <= 0.271 + 1e-12
    assert printed.upper < 0.9 * 0.5


def test_monte_carlo_is_seeded():
    assert monte_carlo(20, 10, 0.01, seed=1) == monte_carlo(20, 10, 0.01, seed=1)
    assert monte_carlo(20, 10, 0.01, seed=1) != monte_carlo(20, 10, 0.01, seed=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decay": 1.0}, r"decay 1.0 is not in \(0, 1\)"),
        ({"decay": 0.0}, r"decay 0.0 is not in \(0, 1\)"),
        ({"decay": float("nan")}, r"decay nan is not in \(0, 1\)"),
        ({"decay": 0.999}, r"decay 0.999 is above 0.996"),
        ({"level": 0.5}, r"level 0.5 is not in \[1e-09, 0.5\)"),
        ({"level": 1e-10}, r"level 1e-10 is not in"),
        ({"k": 11}, r"k = 11 ones among n = 10 observations"),
        ({"n": -1}, r"among n = -1 observations"),
        ({"null": "normal"}, r"null 'normal' is not one of"),
        ({"level": 10**400}, "level 1000+ is not a number"),
        ({"decay": "0.9"}, "decay '0.9' is not a number"),
        ({"k": 5.5}, "'float' object cannot be interpreted as an integer"),
    ],
)
def test_bad_questions_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        null.bounds(**{"n": 10, "k": 5, "level": 0.01, "decay": 0.9, **arguments})


@pytest.mark.slow
def test_a_table_stays_within_thirty_two_megabytes():
    bounds = null.table(0.98, (0.01, 1e-5))
    assert bounds.near.nbytes + bounds.far.nbytes + bounds.few.nbytes < 32e6
