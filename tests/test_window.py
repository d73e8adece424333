"""The law of a window, against enumeration, exact fractions and simulation."""

import sys
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

import fourrates  # noqa: F401
from fourrates.kernel.window import Window

hazard = sys.modules["fourrates.design"]._window_hazard  # the package has a function of the module's name


def value(bits):
    """Of a window, newest bit first: windows with equally many ones are told apart by those in the newer half."""
    half = len(bits) // 2
    return (half + 1) * sum(bits) + sum(bits[:half])


def exact(width, n, ones, value):
    """The chance of this value or less."""
    half = width // 2
    count, newer = divmod(value, half + 1)

    def mass(width, n, ones, count):
        if not (0 <= count <= ones and 0 <= width - count <= n - ones):
            return Fraction(0)
        return Fraction(comb(ones, count) * comb(n - ones, width - count), comb(n, width))

    fewer = sum((mass(width, n, ones, i) for i in range(count)), Fraction(0))
    given = sum((mass(half, width, count, i) for i in range(newer + 1)), Fraction(0)) if count <= width else 0
    return fewer + mass(width, n, ones, count) * given


@pytest.mark.parametrize("width", [2, 3, 4, 5, 7])
def test_every_arrangement_counted_gives_the_chance_of_each_value(width):
    window = Window(width)
    for n in range(width, 12):
        for ones in range(n + 1):
            values = sorted(
                value([i in places for i in range(width)]) for places in map(set, combinations(range(n), ones))
            )
            for one in range(value([1] * width) + 1):
                share = np.searchsorted(values, one, side="right") / len(values)
                assert window.p_value(one, n, ones) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("n", [300, 5_000, 10**6, 10**9])
def test_large_counts_agree_with_exact_fractions(n):
    random = np.random.default_rng(n)
    for _ in range(40):
        width = int(random.integers(2, 256))
        ones = round(n * random.random())
        spread = 6 * np.sqrt(width * ones / n * (1 - ones / n)) + 2
        count = int(np.clip(ones / n * width + spread * random.uniform(-1, 1), 0, width))
        one = (width // 2 + 1) * count + int(random.integers(0, width // 2 + 1))
        expected = float(exact(width, n, ones, one))
        assert Window(width).p_value(one, n, ones) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_the_critical_value_is_the_largest_that_is_rare_enough():
    random = np.random.default_rng(1)
    for _ in range(500):
        width = int(random.integers(2, 256))
        n = width + int(10 ** random.uniform(0, 6))
        ones = int(random.integers(0, n + 1))
        level = 10 ** random.uniform(-9, -0.3)
        window = Window(width)
        found = window.critical(level, n, ones)
        assert found == -1 or window.p_value(found, n, ones) <= level
        most = width * (width // 2 + 1) + width // 2
        assert found == most or window.p_value(found + 1, n, ones) > level
        assert window.lower(level, n, ones) == (found + 1) / most
        assert window.upper(level, n, n - ones) == 1 - window.lower(level, n, ones)


def test_a_window_that_is_not_full_has_no_bounds():
    window = Window(10)
    assert (window.lower(0.4, 9, 5), window.upper(0.4, 9, 5)) == (0.0, 1.0)
    with pytest.raises(ValueError, match="a window of 10 is not full after 9 observations"):
        window.p_value(3, 9, 5)


def test_what_cannot_be_is_refused():
    for width in (1, 256):
        with pytest.raises(ValueError, match=f"window {width} is not from 2 to 255 observations"):
            Window(width)
    with pytest.raises(ValueError, match="value 18 of a window of 5 is not from 0 to 17"):
        Window(5).p_value(18, 11, 6)
    with pytest.raises(ValueError, match="k = 12 ones among n = 11 observations is not possible"):
        Window(5).lower(0.1, 11, 12)


@pytest.mark.parametrize(
    ("width", "rate", "level"), [(16, 0.9, 1e-3), (40, 0.8, 1e-3), (100, 0.6, 1e-3), (250, 0.9, 1e-2)]
)
def test_the_hazard_of_a_window_is_what_simulation_gives(width, rate, level):
    size = 20_000_000
    bits = np.random.default_rng(width).random(size) < rate
    sums = np.concatenate([[0], np.cumsum(bits, dtype=np.int32)])
    half = width // 2
    values = (half + 1) * (sums[width:] - sums[:-width]) + (sums[width:] - sums[width - half : size + 1 - half])
    outside = np.flatnonzero(values <= Window(width).critical(level, 2**30, round(rate * 2**30)))
    # An alarm restarts the detector: what follows within a window's length belongs to it.
    alarms, last = 0, -width
    for at in outside.tolist():
        if at - last >= width:
            alarms, last = alarms + 1, at
    found = alarms / (size - alarms * width)
    assert found == pytest.approx(hazard(width, rate, level, "down"), rel=0.12)
