"""The law of the statistic R under a stable concept, and the bounds that follow from it.

A rate that has seen n bits, k of them ones, carries R <- eta R + (1 - eta) I from R0 = 1/2 on. While the concept is
stable every arrangement of the k ones is equally likely, whatever the true rate is, so the law of R given (n, k) is
known with nothing estimated. :func:`bounds` gives the range of R for n, k and a level, under either of two nulls;
:func:`table` gives the same answers as a table for detectors.

``exact``
    The conditional law given (n, k). P(R < lower) <= level and P(R > upper) <= level hold for every n and k.
``plugin``
    The paper's idea, independent bits with chance k / n of a one, as if k / n were the truth.

The paper's Algorithm 2 simulates the plug-in law; `paper/algorithm2.py` has it.

How the exact bounds are computed, and why they hold (proofs: docs/mathematics.md):

2. *Up to a window w*, with eta**w negligible, the recursion over n carries the law on a lattice. A value between two
   points is split onto both so that its mean is kept. This rounding is a martingale, independent of the bits. Given
   the bits, the rounded statistic exceeds the true one by a margin with some small probability q at most, so
   P(R < x) (1 - q) <= P(rounded R < x + margin).
3. *Beyond w* only the last w bits weigh, and their number of zeros is hypergeometric. A sample from a population is a
   sample from a subsample of it; by Jensen's inequality the tail given (n, k) is then at most that of any larger
   population with at least the same share of zeros, once the tail is replaced by a convex majorant. So a few
   population sizes answer for all n. For a few zeros a smaller n with the same number of zeros answers as well.

The law mirrors. With bits flipped, R becomes 1 - R. So lower bounds serve as upper ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from fourrates import cache
from fourrates.checks import check_number
from fourrates.findings import Bounds
from fourrates.kernel.tables import Table

if TYPE_CHECKING:
    from fourrates.kernel.law import Lattice

Arrays = tuple[npt.NDArray[np.float32], ...]

Null = Literal["exact", "plugin"]
NULLS: tuple[Null, ...] = get_args(Null)

LARGEST_DECAY = 0.996
"""The table grows with 1 / (1 - decay)**2; beyond this it would pass 32 MB and half a minute."""

SMALLEST_LEVEL = 1e-9
MANY = 2**30  # observations, practically infinite

ENUMERATED = 16  # 2**16 arrangements take milliseconds
FINE, NARROW = 128, 0.95  # observations with a finer lattice, and the decay from which they have one
DEVIATIONS = 3.8  # of the rounding error, that make the margin; it is passed with probability exp(-3.8**2 / 2) = 0.0007
KEPT = 0.998  # of a level; the rest pays for that, for single precision and for truncated row ends
MARKS = 128  # rows beyond the window, equally spaced in 1 / n
STEPS = 4000  # values of R in each of them
FEW = 64  # numbers of zeros (0, 1, ...) with separate bounds there
CLEAR = 1e-9  # between a possible value of R and a bound below it
INDEPENDENT = 2.0**40  # a population that answers for every n
VERSION = 4  # of the numbers; raise it whenever they change, so that old tables are not read


def bounds(n: int, k: int, level: float, decay: float = 0.9, null: Null = "exact") -> Bounds:
    """Bounds of R after n observations of which k were ones; `level` is the probability left outside, on each side.

    Examples
    --------
    Fifty observations, forty-five of them correct. How low may the statistic fall by chance once in ten thousand?

    >>> from fourrates import null
    >>> round(null.bounds(50, 45, 1e-4).lower, 3)
    0.657
    """
    found = table(decay, (level,), null)
    n, k = index(n), index(k)
    return Bounds(found.lower(0, n, k), found.upper(0, n, k))


def table(decay: float, levels: Iterable[float], null: Null = "exact") -> Table:
    """Bounds for every (n, k) at several levels, built once, then cached in memory and in the user's cache folder."""
    levels = tuple(sorted({check_level(level, "level") for level in levels}, reverse=True))
    if not levels:
        raise ValueError("no level is given")
    if null not in NULLS:
        raise ValueError(f"null {null!r} is not one of {NULLS}")
    return _table(check_decay(decay), levels, null)


def check_decay(decay: float) -> float:
    """`decay` as a float, or an error that names its range."""
    decay = check_number(decay, "decay")
    if not 0.0 < decay < 1.0:
        raise ValueError(f"decay {decay!r} is not in (0, 1)")
    if decay > LARGEST_DECAY:
        raise ValueError(f"decay {decay!r} is above {LARGEST_DECAY}, the largest a table of bounds is built for")
    return decay


def check_level(level: float, name: str) -> float:
    """`level` as a float, or an error that names its range."""
    level = check_number(level, name)
    if not SMALLEST_LEVEL <= level < 0.5:
        raise ValueError(f"{name} {level!r} is not in [{SMALLEST_LEVEL:g}, 0.5)")
    return level


@lru_cache(maxsize=64)
def _table(decay: float, levels: tuple[float, ...], null: Null) -> Table:
    described = ",".join(level.hex() for level in levels)
    key = f"fourrates {VERSION} {null} {decay.hex()} {described}"
    marks = MARKS if null == "exact" else 0
    few = FEW if null == "exact" else 1
    window = _window(decay)
    shapes = [
        (len(levels), (window + 1) * (window + 2) // 2),
        (len(levels), marks + 1, STEPS + 1),
        (len(levels), marks + 1, few),
    ]
    arrays = cache.read(key, shapes)
    if arrays is None or not _is_sound(arrays, window):
        arrays = _build(decay, levels, exact=null == "exact")
        cache.write(key, arrays)
    return Table(decay, levels, *arrays)


def _is_sound(arrays: Arrays, window: int) -> bool:
    """Whether these can be arrays of a table, in range and monotone in level, zeros and value as bounds are."""
    near, far, rare = arrays
    lowest = -2 * CLEAR  # of a bound clear of an atom at 0
    if not all(((least <= array) & (array <= 1)).all() for array, least in ((near, lowest), (far, -1), (rare, 0))):
        return False  # nan is in no range
    rises = near[:, 1:] > near[:, :-1]
    rises[:, [n * (n + 1) // 2 - 1 for n in range(1, window + 1)]] = False  # from the end of a row to the next
    falling = (near[1:] <= near[:-1]).all() and (far[1:] <= far[:-1]).all() and (far[..., 1:] <= far[..., :-1]).all()
    return bool(falling and not rises.any() and (rare[..., 1:] <= rare[..., :-1]).all())


def _build(decay: float, levels: tuple[float, ...], exact: bool) -> Arrays:
    from fourrates.kernel.law import Search

    window, margin = _window(decay), _margin(decay)
    near = np.zeros((len(levels), (window + 1) * (window + 2) // 2), np.float32)
    law: Lattice | _Enumerated
    if window == ENUMERATED:
        margin = 0.0
        law = _Enumerated(decay)
    else:
        law = _lattice(decay, window, margin, levels)
    (_near if exact else _near_plugin)(decay, levels, near, law)
    # Beyond the window.
    marks = MARKS if exact else 0
    kept = np.array(levels) * KEPT
    populations = np.array([INDEPENDENT] + [float(marks * window // i) for i in range(1, marks + 1)])
    least = np.array([float(max(marks * window // (i + 1), window) + 1) for i in range(marks + 1)])
    few = np.zeros((len(levels), marks + 1, FEW if exact else 1), np.float32)
    search = Search(window, populations, least, kept, few)
    far = np.empty((len(levels), marks + 1, STEPS + 1), np.float32)
    tail = np.empty(window + 1)
    # The bits older than the window are worth between 0 and decay**window; the law of R counts half of it.
    older = 0.5 * decay**window
    for step in range(STEPS, -1, -1):
        law.column(step / STEPS + margin + older, tail)
        far[:, :, step] = search.refine(step / STEPS, tail) / populations
    return near, np.nextafter(far, np.float32(-1), out=far), few


def _margin(decay: float) -> float:
    return 2e-4 if decay <= 0.99 else 3e-4


def _window(decay: float) -> int:
    return max(ENUMERATED, math.ceil(math.log(_margin(decay) / 4) / math.log(decay)))


def slack(decay: float) -> float:
    """How far beyond the law's quantile a bound is after many observations, before rounding to 1 / STEPS."""
    window = _window(decay)
    return (0.0 if window == ENUMERATED else _margin(decay)) + 0.5 * decay**window


def _lattice(decay: float, rows: int, margin: float, levels: tuple[float, ...]) -> Lattice:
    """A lattice so fine that its rounding error passes the margin with probability exp(-DEVIATIONS**2 / 2) at most."""
    from statistics import NormalDist

    from fourrates.kernel.law import Lattice

    # Coarsen when values have shrunk to 0.6, rarely enough to be cheap and often enough to keep rows short.
    stride = max(1, round(math.log(0.6) / math.log(decay)))
    # The rounding error at n is a sum of centred steps no longer than the spacing, each shrunk by decay since.
    deviation = 0.5 * math.sqrt(1 / (1 - decay**2) + 1 / (1 - decay ** (2 * stride)))
    spacing = margin / DEVIATIONS / deviation
    # KEPT pays for the mass cut from a row's lower end, at most this at each step.
    floor_cut = min(levels) * 1e-4 / 2400
    ceil_cut = 1e-5
    spread = 0.5 * math.sqrt((1 - decay) / (1 + decay) * (1 - decay ** (2 * rows)))
    reach = 1.25 * spread * (NormalDist().inv_cdf(1 - ceil_cut) - NormalDist().inv_cdf(floor_cut))
    width = int(min(1.0, reach) / decay**stride / spacing) + 64
    return Lattice(decay, spacing, stride, rows, width, floor_cut, ceil_cut)


def _near(decay: float, levels: tuple[float, ...], near: npt.NDArray[np.float32], law: Lattice | _Enumerated) -> None:
    """Fill in the exact bounds up to the window."""
    kept = np.array(levels) * KEPT
    if not isinstance(law, _Enumerated):
        _advance(law, _window(decay), kept, _margin(decay), near)
        if decay >= NARROW:
            # Near 1 the first statistics hardly vary, and a margin fit for later ones would hide all they do.
            margin = _margin(decay) / 16
            _advance(_lattice(decay, FINE, margin, levels), FINE, kept, margin, near)
    for n, laws in _arrangements(decay):
        for k, values in enumerate(laws):
            for i, level in enumerate(levels):
                # At most this many arrangements may lie below. A level such as 0.1 is a hair off in binary, so let it
                # still count 12 of 120.
                below = int(level * values.size * (1 + 1e-12))
                near[i, n * (n + 1) // 2 + n - k] = _clear_of(values[below])


def _advance(
    lattice: Lattice, rows: int, levels: npt.NDArray[np.float64], margin: float, near: npt.NDArray[np.float32]
) -> None:
    while lattice.n < rows:
        lattice.advance(rows, levels, margin, near)


def _near_plugin(
    decay: float, levels: tuple[float, ...], near: npt.NDArray[np.float32], law: Lattice | _Enumerated
) -> None:
    """Fill in the plug-in bounds up to the window."""
    near[:, 0] = 0.5
    if isinstance(law, _Enumerated):
        for n, laws in _arrangements(decay):
            values, ones = np.concatenate(laws), np.repeat(np.arange(n + 1), [law.size for law in laws])
            order = np.argsort(values)
            for zeros in range(n + 1) if n else ():
                chances = np.cumsum(((n - zeros) / n) ** ones[order] * (zeros / n) ** (n - ones[order]))
                below = np.minimum(np.searchsorted(chances, levels, side="right"), values.size - 1)
                near[:, n * (n + 1) // 2 + zeros] = _clear_of(values[order][below])
        return
    nothing, margin = np.empty(0), _margin(decay)
    for n in range(1, _window(decay) + 1):
        law.advance(n, nothing, margin, near)
        start = n * (n + 1) // 2
        for i, level in enumerate(levels):
            law.plugin(level, margin, near[i, start : start + n + 1])


def _clear_of(atom: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """A bound slightly below a possible value of R, since R is rounded as it is updated."""
    return np.nextafter(np.asarray(np.asarray(atom) - CLEAR, np.float32), np.float32(-1))


def _arrangements(decay: float) -> Iterator[tuple[int, list[npt.NDArray[np.float64]]]]:
    """For n = 0 .. 16 the values of R over all arrangements, sorted, one array for each number of ones."""
    laws = [np.array([0.5])]
    for n in range(ENUMERATED + 1):
        yield n, laws
        zero, one = [decay * law for law in laws], [decay * law + (1 - decay) for law in laws]
        laws = [zero[0], *(np.sort(np.concatenate(pair)) for pair in zip(zero[1:], one[:-1], strict=True)), one[-1]]


class _Enumerated:
    """The exact law of R after 16 observations, sufficient if decay**16 is negligible."""

    def __init__(self, decay: float) -> None:
        *_, (_, laws) = _arrangements(decay)
        values, ones = np.concatenate(laws), np.repeat(np.arange(len(laws)), [law.size for law in laws])
        order = np.argsort(values)
        self.values = values[order]
        # How many of the smallest values, none of them to all, have each number of zeros.
        self.counts = np.zeros((values.size + 1, len(laws)), np.int32)
        np.cumsum(np.eye(len(laws), dtype=np.int32)[::-1][ones[order]], axis=0, out=self.counts[1:])

    def column(self, x: float, out: npt.NDArray[np.float64]) -> None:
        """As :meth:`fourrates.kernel.law.Lattice.column`."""
        out[:] = self.counts[np.searchsorted(self.values, x + 1e-9)] / self.counts[-1]
