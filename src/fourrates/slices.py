"""Locate a drift. Score every value of some columns, and every pair of values, by their share of the fall.

The start of the drift separates before and after. A slice carries the fall if its log-odds of being right fell by more
than those of all other rows, significantly after correcting for all slices tested. This difference of differences is
measured in standard errors. By Bonferroni, half of the level is for single values and a quarter for the many more
pairs, since the log-odds of few rows are skewed towards falls. Of slices inside one another the simplest sufficient one
is named.

A pair of values has few rows before, but the rows with one of the two values and those with neither say what is to be
expected of it if the columns do not interact. How far that holds is estimated from all pairs of the two columns, and
the two are weighted by their precisions (:func:`_with_parents`). The rows of the pair alone must show the fall too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fourrates.events.columns import checked_column, distinct_values, listed_values, numbers, pick, pyarrow
from fourrates.findings import CLASSES, Share
from fourrates.labels import rate_names
from fourrates.plain import to_json

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.batch import Batch
    from fourrates.findings import Drift, Finding
    from fourrates.io import Events

    Cells = npt.NDArray[np.float64]  # (..., 4), before and wrong, before and right, after and wrong, after and right

BINS = 8  # of a column of numbers
MOST = 60  # most frequent values tested in a column of names
LEAST = 20  # rows before and after
# In standard errors:
EXPLAINED = 2.0  # the rest of a value fell too
CHOSEN = 3.5  # a pair, the best of many, beats the rest of a value
ALONE = 3.0  # the rows of a pair show it without what others say of before


class Condition(NamedTuple):
    """A value of a column, or a range of numbers."""

    column: str
    value: str

    def __str__(self) -> str:
        return f"{self.column} {self.value}" if self.value[0] in "<>" else f"{self.column} = {self.value}"


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows that share one or two values."""

    where: tuple[Condition, ...]  #: the shared values
    before: Share  #: the share of right predictions on either side of the start of the drift
    after: Share
    carried: float  #: the share of all additional errors that are in this slice
    deviations: float  #: how much more it fell than the other rows, in standard errors
    significant: bool  #: whether that is significant among all slices tested
    rate: str = ""  #: the rate that moved; several are separated by commas

    def __str__(self) -> str:
        named = " and ".join(map(str, self.where))
        moved = f"{self.rate} {self.before.value:.3f} -> {self.after.value:.3f}".lstrip()
        rows = f"of {self.after.n:,} {CLASSES.get(self.rate, 'rows')}"
        if not self.significant:
            return f"no values stand out; the first, {named}, may be chance: {moved} {rows}"
        return f"{named}: {moved}, {self.carried:.0%} of the fall, {rows}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {**to_json(self), "where": dict(self.where)}


class Column(NamedTuple):
    """A column as codes; -1 for values left out."""

    name: str
    codes: npt.NDArray[np.int32]
    values: list[str]
    ordered: bool

    @classmethod
    def of(cls, name: str, column: Any) -> Column:
        """Numbers in bins of equal size, the most frequent names."""
        values, codes, gone = distinct_values(column)
        codes = codes.astype(np.int32)
        if gone is not None:
            codes[gone] = -1
        if len(values) > 2 * BINS and all(isinstance(value, int | float) for value in values):
            return cls._binned(name, numbers(column)[0])
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        chosen = np.argsort(-counts, kind="stable")[:MOST]
        renumbered = np.full(len(values) + 1, -1, np.int32)  # the last for missing values
        renumbered[chosen] = np.arange(chosen.size)
        return cls(name, renumbered[codes], [str(values[code]) for code in chosen], False)

    @classmethod
    def _binned(cls, name: str, column: npt.NDArray[np.float64]) -> Column:
        edges = np.unique(np.nanquantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
        codes = np.searchsorted(edges, column, side="right").astype(np.int32)
        codes[np.isnan(column)] = -1
        names = [f"{edge:.4g}" for edge in edges]
        between = [f">= {low}, < {high}" for low, high in pairwise(names)]
        return cls(name, codes, [f"< {names[0]}", *between, f">= {names[-1]}"], True)


def find_slices(
    columns: Mapping[str, Any], after: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_], alpha: float = 0.1
) -> list[Slice]:
    """The slices that carry a fall, strongest first; if none is significant, the strongest one alone.

    Parameters
    ----------
    columns : mapping from names to columns
        Of the rows whose true class has the recall that fell.
    after, right : arrays of bool
        Whether each row is from after the start of the drift, and was predicted right.
    alpha : float
        The probability of any significant slice if the fall is everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from fourrates.slices import find_slices
    >>> random = np.random.default_rng(1)
    >>> country = random.choice(["DE", "FR", "US"], 20_000)
    >>> device = random.choice(["ios", "web"], 20_000)
    >>> after = np.arange(20_000) >= 15_000
    >>> right = random.random(20_000) < np.where(after & (country == "FR"), 0.6, 0.8)
    >>> print(*find_slices({"country": country, "device": device}, after, right))
    country = FR: 0.796 -> 0.586, 98% of the fall, of 1,637 rows
    """
    coded = [Column.of(name, column) for name, column in columns.items()]
    kind = 2 * after.astype(np.int32) + right
    candidates, cells, before = _all_slices(coded, kind)
    if not candidates:
        return []
    total = np.bincount(kind, minlength=4).astype(float)
    columns_of = [len(candidate) for candidate in candidates]
    limit = {number: _limit(alpha / 2**number, count) for number, count in Counter(columns_of).items()}
    limits = np.array([limit[number] for number in columns_of])
    scores = _fall_beyond(cells, total - cells)
    helped = _fall_beyond(np.concatenate([before, cells[:, 2:]], axis=1), total - cells)
    scores = np.where(scores >= ALONE, helped, np.minimum(scores, helped))
    order = np.argsort(limits**2 - scores * np.abs(scores), kind="stable")  # the least likely by chance first
    standing = [at for at in order.tolist() if scores[at] >= limits[at]] or order[:1].tolist()
    rows = {at: _members(coded, candidates[at]) for at in standing}
    slices: list[Slice] = []
    explained = np.zeros(kind.size, bool)
    while standing:
        best = _simplest(standing[0], standing, candidates, rows, kind, explained)
        here = np.bincount(kind[rows[best]], minlength=4).astype(float)
        significant = bool(scores[best] >= limits[best])
        slices.append(_described(coded, candidates[best], here, total, float(scores[best]), significant))
        explained |= rows[best]
        more = {at: before[at] - cells[at, :2] for at in standing}
        again = {
            at: _score(kind, rows[at] & ~explained, ~rows[at] & ~explained, more[at]) for at in standing if at != best
        }
        standing = sorted(
            (at for at in again if again[at] >= limits[at]), key=lambda at: limits[at] ** 2 - again[at] ** 2
        )
    return slices


def _limit(alpha: float, number: int) -> float:
    return NormalDist().inv_cdf(1 - alpha / number)


@dataclass
class Episode:
    """The events of a drift when data are read again, its rows and those after its start.

    It begins after the previous drift or with the data, and ends with this drift or with the data.
    """

    drift: Drift
    findings: Sequence[Finding]

    def __post_init__(self) -> None:
        drift = self.drift
        here = [
            finding for finding in self.findings if (finding.segment, finding.version) == (drift.segment, drift.version)
        ]
        ends = [finding.at for finding in here if finding.closes]
        self.first = max((at for at in ends if at <= drift.at), default=0)
        self.last = min((at for at in ends if at > drift.at), default=math.inf)
        self.start = drift.since if drift.started is None else drift.started
        self._position = 0

    def rows(self, batch: Batch, names: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The positions of its events in the next batch, and whether they are after the start."""
        mine = np.ones(batch.rows.size, bool)
        if self.drift.segment is not None and batch.keys is not None:
            mine = np.array([name == self.drift.segment for name in names])[batch.keys]
        if self.drift.version is not None and batch.versions is not None:  # events are counted within a version
            mine &= np.array([name == self.drift.version for name in batch.version_names])[batch.versions]
        places = self._position + np.cumsum(mine)
        self._position = int(places[-1])
        rows = np.flatnonzero(mine & (places > self.first) & (places <= self.last))
        return rows, places[rows] > self.start


def slices_of(events: Events, findings: Sequence[Finding], drift: Drift, columns: Sequence[str]) -> list[Slice]:
    """The slices that carry a drift, from the data read again."""
    episode = Episode(drift, findings)
    rates = rate_names(events.labels.values)
    fell = [change.rate for change in drift.changes if change.direction == "down"]
    moved = [rate for rate in fell or [change.rate for change in drift.changes] if rate in rates]
    classes = [rates.index(rate) for rate in moved]
    rate = ", ".join(moved if fell else [f"1 - {name}" for name in moved])  # of one that rose, its errors
    again = events.reread(columns)
    there: dict[str, list[npt.NDArray[np.int64]]] = {}  # by source: row, whether it is after the start, whether right
    for batch in again:
        rows, since = episode.rows(batch, again.keys)
        chosen = np.isin(batch.truths[rows], classes)
        rows = rows[chosen]
        right = (batch.truths == batch.preds)[rows] == bool(fell)
        there.setdefault(batch.source, []).append(np.stack([batch.rows[rows], since[chosen], right]))
    kept: list[list[Any]] = [[] for _ in columns]
    sides = []
    by_source = {source: np.concatenate(parts, axis=1) for source, parts in there.items()}
    for table in events.reread(columns).tables():
        own = by_source.get(table.source, np.empty((3, 0), np.int64))
        own = own[:, np.isin(own[0], table.rows)]
        sides.append(own[1:] > 0)
        for name, parts in zip(columns, kept, strict=True):
            parts.append(pick(checked_column(table.data[name], name), np.searchsorted(table.rows, own[0])))
    joined = {name: _joined(parts) for name, parts in zip(columns, kept, strict=True)}
    return [replace(part, rate=rate) for part in find_slices(joined, *np.concatenate(sides, axis=1))]


def examples_of(events: Events, findings: Sequence[Finding], drift: Drift) -> dict[str, npt.NDArray[np.int64]]:
    """The rows of a drift's new level, by file, from the data read again."""
    episode, again = Episode(drift, findings), events.reread(())
    rows: dict[str, list[npt.NDArray[np.int64]]] = {}
    for batch in again:
        own, since = episode.rows(batch, again.keys)
        if since.any():
            rows.setdefault(batch.source, []).append(batch.rows[own[since]])
    return {source: np.concatenate(parts) for source, parts in rows.items()}


def _joined(parts: list[Any]) -> Any:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if any(isinstance(part, np.ndarray | list) for part in parts):
        return [value for part in parts for value in listed_values(part)]
    arrow = pyarrow("pyarrow")
    return arrow.concat_arrays(chunk for part in parts for chunk in getattr(part, "chunks", [part]))


Candidate = tuple[tuple[int, int, int], ...]  # of each column, its number, the first and the last of its codes


def _all_slices(coded: Sequence[Column], kind: npt.NDArray[np.int32]) -> tuple[list[Candidate], Cells, Cells]:
    """Every value and range of a column and every pair of values; small ones are left out.

    With four counts of each, and the two of before with what other rows say of them.
    """
    candidates: list[Candidate] = []
    cells: list[Cells] = []
    before: list[Cells] = []
    total = np.bincount(kind, minlength=4).astype(float)
    singles = [_counts(column.codes, len(column.values), kind) for column in coded]
    for number, column in enumerate(coded):
        values = len(column.values)
        ends = [(low, high) for low in range(values) for high in range(low, values if column.ordered else low + 1)]
        ends = [(low, high) for low, high in ends if high - low < values - 1]  # all values are no slice
        candidates += [((number, low, high),) for low, high in ends]
        sums = np.concatenate([np.zeros((1, 4)), np.cumsum(singles[number], axis=0)])
        cells += [sums[high + 1] - sums[low] for low, high in ends]
    before += [counts[:2] for counts in cells]
    for (i, first), (j, second) in combinations(enumerate(coded), 2):
        values = len(second.values)
        codes = np.where((first.codes < 0) | (second.codes < 0), -1, first.codes * values + second.codes)
        pairs = _counts(codes, len(first.values) * values, kind)
        large = np.flatnonzero(_is_large(pairs))
        others = np.repeat(singles[i], values, axis=0)[large], np.tile(singles[j], (len(first.values), 1))[large]
        candidates += [((i, at // values, at // values), (j, at % values, at % values)) for at in large.tolist()]
        cells += [*pairs[large]]
        before += [*_with_parents(pairs[large, :2], others[0][:, :2], others[1][:, :2], total[:2])]
    stacked = np.array(cells).reshape(-1, 4)
    enough = _is_large(stacked)
    kept = [candidate for candidate, keep in zip(candidates, enough, strict=True) if keep]
    return kept, stacked[enough], np.array(before).reshape(-1, 2)[enough]


def _with_parents(cells: Cells, first: Cells, second: Cells, total: Cells) -> Cells:
    """The counts of pairs of two columns before, as if those of their rows were more by what the other rows say.

    Without an interaction the log-odds of a pair are those of the rows with its first value alone, plus those with its
    second alone, less those with neither, none of which are its own rows. The variance of interactions is what the
    pairs deviate from that beyond chance.
    """
    own, variance = _log_odds(cells)
    others = np.stack([first - cells, second - cells, total - first - second + cells])
    odds, variances = _log_odds(np.maximum(others, 0))
    expected, spread = odds[0] + odds[1] - odds[2], variances.sum(0)
    weights = 1 / (variance + spread) ** 2
    interaction = max(0.0, float(weights @ ((own - expected) ** 2 - variance - spread)) / max(weights.sum(), 1e-300))
    precision = 1 / variance + 1 / (spread + interaction)
    right = 1 / (1 + np.exp(-(own / variance + expected / (spread + interaction)) / precision))
    counts = np.stack([precision / right, precision / (1 - right)], axis=-1)
    return np.maximum(counts - 0.5, 0)


def _log_odds(cells: Cells) -> tuple[Cells, Cells]:
    """Of being right, from the counts of wrong and right; with its variance."""
    return np.log((cells[..., 1] + 0.5) / (cells[..., 0] + 0.5)), (1 / (cells + 0.5)).sum(-1)


def _counts(codes: npt.NDArray[np.int32], values: int, kind: npt.NDArray[np.int32]) -> Cells:
    return np.bincount(4 * (codes + 1) + kind, minlength=4 * (values + 1)).reshape(-1, 4)[1:].astype(float)


def _is_large(cells: Cells) -> npt.NDArray[np.bool_]:
    enough: npt.NDArray[np.bool_] = (cells[:, 0] + cells[:, 1] >= LEAST) & (cells[:, 2] + cells[:, 3] >= LEAST)
    return enough


def _fall_beyond(here: Cells, elsewhere: Cells) -> npt.NDArray[np.float64]:
    """How much more the log-odds of being right fell here than elsewhere, in standard errors."""

    def fall(cells: Cells) -> npt.NDArray[np.float64]:
        odds = np.log(cells + 0.5)
        return np.asarray((odds[..., 1] - odds[..., 0]) - (odds[..., 3] - odds[..., 2]))

    variance = (1 / (here + 0.5)).sum(-1) + (1 / (elsewhere + 0.5)).sum(-1)
    return np.asarray((fall(here) - fall(elsewhere)) / np.sqrt(variance))


def _score(
    kind: npt.NDArray[np.int32], here: npt.NDArray[np.bool_], elsewhere: npt.NDArray[np.bool_], more: Any = 0.0
) -> float:
    """`more` is added to the counts here of before."""
    cells = [np.bincount(kind[rows], minlength=4).astype(float) for rows in (here, elsewhere)]
    if not _is_large(cells[0][None])[0]:
        return -math.inf
    cells[0][:2] = np.maximum(cells[0][:2] + more, 0)
    return float(_fall_beyond(*cells))


def _members(coded: Sequence[Column], candidate: Candidate) -> npt.NDArray[np.bool_]:
    rows = np.ones(coded[0].codes.size, bool)
    for number, low, high in candidate:
        rows &= (coded[number].codes >= low) & (coded[number].codes <= high)
    return rows


def _simplest(
    best: int,
    standing: Sequence[int],
    candidates: Sequence[Candidate],
    rows: Mapping[int, npt.NDArray[np.bool_]],
    kind: npt.NDArray[np.int32],
    explained: npt.NDArray[np.bool_],
) -> int:
    """A pair of values, or one of them if that suffices because the rest of its rows fell as much."""
    if len(candidates[best]) == 1:
        return best
    for at in standing:
        if len(candidates[at]) == 1 and candidates[at][0] in candidates[best]:
            rest = rows[at] & ~rows[best] & ~explained
            if (
                _score(kind, rows[best] & ~explained, rest) < CHOSEN
                and _score(kind, rest, ~rows[at] & ~explained) > EXPLAINED
            ):
                return at
    return best


def _described(
    coded: Sequence[Column], candidate: Candidate, cells: Cells, total: Cells, score: float, significant: bool
) -> Slice:
    where = []
    for number, low, high in candidate:
        column = coded[number]
        if low == high:
            value = column.values[low]
        else:  # a range, from the lower end of its first bin to the upper end of its last
            lower, upper = column.values[low].split(", ")[0], column.values[high].split(", ")[-1]
            value = ", ".join(end for end in (lower, upper) if end[0] == (">" if end is lower else "<"))
        where.append(Condition(column.name, value))

    def share(cells: Cells, side: int) -> Share:
        wrong, right = cells[2 * side : 2 * side + 2]
        return Share.of(right, wrong + right)

    def excess(cells: Cells) -> float:
        before, after = share(cells, 0), share(cells, 1)
        return after.n * (before.value - after.value)

    carried = excess(cells) / excess(total) if excess(total) > 0 else math.nan
    return Slice(tuple(where), share(cells, 0), share(cells, 1), carried, score, significant)
