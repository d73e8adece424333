"""The power of the two statistics: R of LFR and P-hat of NFR, so many observations after a change.

A rate is p for M observations and q for k more. The null law is that of the statistic after M observations at p, which
is taken as known; the power is the chance that the statistic after M + k lies beyond its quantiles. Nothing is drawn at
random. P-hat is a sum of two binomials, whose laws are convolved. The law of R is carried along on a lattice,

    F[k+1](x) = q F[k]((x - (1 - eta)) / eta) + (1 - q) F[k](x / eta),

for all q at once. The paper does not print the level of its power analysis; here it is the warning level of its Table
IV on each side, for both statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paper.numbers import DECAY, TABLE4

BEFORE, LAGS = 1000, 200  # the paper's M and K
LEVEL = TABLE4["LFR"].warn
POINTS = 4001  # of the lattice
RATES = tuple(i / 20 for i in range(1, 20))

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Power:
    """Power at each lag and each new rate.

    Attributes
    ----------
    p : float
        The rate before the change.
    q : tuple of float
        The rates after it.
    linear, naive : array, lags by rates
        The power of R and that of P-hat, at the lags 1, ..., K.
    """

    p: float
    q: tuple[float, ...]
    linear: Array
    naive: Array

    @property
    def difference(self) -> Array:
        """The paper's Delta beta: what R is ahead."""
        return self.linear - self.naive


def power(
    p: float, q: tuple[float, ...] = RATES, *, lags: int = LAGS, before: int = BEFORE, level: float = LEVEL
) -> Power:
    """The power of both statistics after a change from p to each q.

    Parameters
    ----------
    p : float
        The rate before.
    q : tuple of float
        The rates after.
    lags : int
        K, the largest lag.
    before : int
        M, the observations before the change.
    level : float
        Of each test, on each side.

    Examples
    --------
    Ten observations after a fall from 0.9 to 0.5, R knows far more often than P-hat; after 100 both do.

    >>> from paper.power import power
    >>> found = power(0.9, (0.5,), lags=100)
    >>> print(f"{found.linear[9, 0]:.2f} against {found.naive[9, 0]:.2f}")
    0.72 against 0.03
    """
    return Power(p, q, linear_power(p, q, lags, level), naive_power(p, q, lags, before, level))


def linear_power(p: float, q: tuple[float, ...], lags: int = LAGS, level: float = LEVEL, decay: float = DECAY) -> Array:
    """The power of R, lags by rates; before the change so many observations that its start is forgotten."""
    lattice = _Lattice(decay)
    law = lattice.grid[:, None]  # of anything at all between 0 and 1: it is forgotten like R(0)
    for _ in range(math.ceil(math.log(1e-7) / math.log(decay))):
        law = lattice.step(law, np.array([p]))
    low, high = (float(np.interp(share, law[:, 0], lattice.grid)) for share in (level, 1 - level))
    after, new = np.repeat(law, len(q), axis=1), np.array(q)
    found = np.empty((lags, len(q)))
    for lag in range(lags):
        after = lattice.step(after, new)
        found[lag] = lattice.at(after, low) + 1 - lattice.at(after, high)
    return found


class _Lattice:
    """Distribution functions of R between 0 and 1, one a column, carried along observation by observation."""

    def __init__(self, decay: float) -> None:
        self.grid = np.linspace(0, 1, POINTS)
        self._wrong = self._places(self.grid / decay)
        self._right = self._places((self.grid - (1 - decay)) / decay)

    @staticmethod
    def _places(x: Array) -> tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.bool_]]:
        place = np.clip(x, 0, 1) * (POINTS - 1)
        left = np.minimum(place.astype(np.int64), POINTS - 2)
        return left, (place - left)[:, None], x < 0

    def step(self, law: Array, shares: Array) -> Array:
        """One observation later, which is right with these chances."""
        return shares * self._moved(law, self._right) + (1 - shares) * self._moved(law, self._wrong)

    @staticmethod
    def _moved(law: Array, places: tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.bool_]]) -> Array:
        left, weight, below = places
        value, rise = law.take(left, axis=0), law.take(left + 1, axis=0)
        rise -= value
        rise *= weight
        value += rise
        value[below] = 0.0
        return value

    def at(self, law: Array, x: float) -> Array:
        """Each function at one point."""
        left = min(int(x * (POINTS - 1)), POINTS - 2)
        found: Array = law[left] + (x * (POINTS - 1) - left) * (law[left + 1] - law[left])
        return found


def naive_power(p: float, q: tuple[float, ...], lags: int = LAGS, before: int = BEFORE, level: float = LEVEL) -> Array:
    """The power of P-hat, lags by rates: a test that rejects outside the quantiles of P-hat after `before`."""
    past = binomial(before, p)
    below = np.concatenate([[0.0], np.cumsum(past)])  # below[j]: fewer than j ones
    low = int(np.searchsorted(below, level, side="right")) - 1  # P(ones < low) <= level
    high = before - (int(np.searchsorted(np.concatenate([[0.0], np.cumsum(past[::-1])]), level, side="right")) - 1)
    found = np.empty((lags, len(q)))
    for column, share in enumerate(q):
        for lag in range(1, lags + 1):
            recent = binomial(lag, share)
            # Rejected where (past + recent) / (before + lag) < low / before, or > high / before.
            scale = (before + lag) / before
            ones = np.arange(lag + 1)
            fewest = np.ceil(low * scale - ones - 1e-9).astype(np.int64)  # past ones below this reject
            most = np.floor(high * scale - ones + 1e-9).astype(np.int64)  # past ones above this reject
            inside = below[np.clip(most + 1, 0, before + 1)] - below[np.clip(fewest, 0, before + 1)]
            found[lag - 1, column] = 1 - float(recent @ np.maximum(inside, 0))
    return found


def binomial(n: int, p: float) -> Array:
    """The chances of 0, ..., n ones among n, each with chance p in (0, 1)."""
    k = np.arange(n + 1)
    steps = np.log(np.arange(1, n + 1))
    factorial = np.concatenate([[0.0], np.cumsum(steps)])
    chances: Array = np.exp(factorial[n] - factorial - factorial[::-1] + k * math.log(p) + (n - k) * math.log1p(-p))
    return chances
