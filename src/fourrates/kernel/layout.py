"""How a record of evidence lies in memory, and which bytes can be one.

Bytes from anywhere may be refused, never believed: every value is held against its range and against the others before
the kernel sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LANES, SIZES, BLOCKS, SMALLEST, PERIOD, FLAGS = 12, 6, 4, 8, 8192, 6  # as the kernel has them
NOTHING = 1e-37  # about the smallest float of four bytes: below, rounding takes evidence away before its age


class Judgement(NamedTuple):
    """The hypothesis with most of the evidence."""

    owner: int  # the class whose lanes have it, or -1 for those of several
    first: int  # of these lanes,
    lanes: int  # and how many
    back: bool  # whether it says that the classes are back at their reference
    ways: list[tuple[int, int]]  # (class, -1 or 1) of those that moved
    way_of_mix: int  # which way the classes shifted with it: -1, 1, or 0 for none,
    telling: bool  # and whether that explains a good deal more than the recalls alone


@dataclass(frozen=True, slots=True)
class EvidenceLayout:
    """What the records of some rules look like."""

    classes: int
    watch_mix: bool
    watch_joint: bool
    hold: bool
    keyed: bool
    prior: float
    lag: float
    given_lag: float
    threshold: float
    most: float  # the largest threshold, that of the mix included
    rows: int  # of the table of alternatives
    given: npt.NDArray[np.float32]
    given_ones: npt.NDArray[np.float32]
    watched: tuple[npt.NDArray[np.bool_], ...]  # lanes that ever have a weight: a recall's, of all, of mix and both
    remembered: float  # pairs of blocks
    estimate: bool  # whether dispersion is estimated; if not, no block is ever begun
    refers: bool  # whether a stream may have a reference

    def dtype(self) -> np.dtype[Any]:
        """The layout of a record."""
        return _dtype(self.classes, self.watch_mix, self.watch_joint, self.refers)

    def check(self, records: npt.NDArray[np.uint8]) -> None:
        """Raise ValueError unless each of these can be a record of the rules."""
        ones = records.view(self.dtype())[:, 0]
        parts = [ones["recall"], ones["shared"][:, None]]
        more = (("mix", self.watch_mix), ("joint", self.watch_joint))
        parts += [ones[name][:, None] for name, watched in more if watched]
        with np.errstate(over="ignore", invalid="ignore"):
            for found in parts:
                self._check_numbers(found)
            self._check_counts(ones)
            self._check_evidence(ones, parts)

    def _check_numbers(self, found: Any) -> None:
        """What holds for every part of a record by itself."""
        for name in found.dtype.names:
            inner = found[name].dtype.names
            for value in [found[name]] if inner is None else [found[name][part] for part in inner]:
                if value.dtype.kind == "f" and not np.isfinite(value).all():
                    raise ValueError(f"{name} is not finite")
        for name in ("evidence", "age", "total", "seen", "right", "due"):
            if name in found.dtype.names and (found[name] < 0).any():
                raise ValueError(f"{name} is negative")
        for name in ("power", "shared_power", "base"):
            if name in found.dtype.names and not ((found[name] >= 0) & (found[name] <= 1)).all():
                raise ValueError(f"{name} is not in [0, 1]")
        if "dispersion" not in found.dtype.names:
            return
        dispersion = found["dispersion"]
        pairs, squares = dispersion["pairs"], dispersion["squares"]
        # What is let in stays in: to numbers as large as these, floats of four bytes, a further block adds nothing.
        if (pairs < 0).any() or (pairs >= self.remembered).any() or (squares < 0).any() or (squares > 1e34).any():
            raise ValueError("dispersion of no stream")

    def _check_counts(self, ones: Any) -> None:
        """Counts go together: events, those since the restart, observations of each class, and the reference."""
        events = (ones["head"]["events"] >> FLAGS).astype(np.int64)[:, None]
        counts, recall, taken = ones["counts"], ones["recall"], ones["shared"]["taken"][:, None]
        n, right = recall["n"], recall["ones"]
        wrong = (counts < 0).any((1, 2)) | (counts > events[:, None]).any((1, 2)) | (counts.sum((1, 2)) != taken[:, 0])
        wrong |= (taken > events)[:, 0] | (counts.sum((1, 2), dtype=np.float64) > 2.0**62)  # more would not be a sum
        if wrong.any():
            raise ValueError("counts that do not fit the events since the restart")
        more, added = n - counts.sum(2), right - counts.diagonal(0, 1, 2)  # what a recall went on from, under hold
        if ((right < 0) | (right > n) | (n > events) | (added < 0) | (added > more) | ((more > 0) > self.hold)).any():
            raise ValueError("observations that do not fit the events since the restart")
        if ((taken - recall["last"].astype(np.int64)) % 2**32 > taken).any():
            raise ValueError("an observation after the last event")
        if (np.abs(recall["moved"].astype(np.int64)) > (1 if self.hold else 0)).any():
            raise ValueError("a recall that moved neither up nor down")
        if (recall["row"] >= self.rows).any():
            raise ValueError("a rate that is in no row")
        if any((np.diff(recall[name]) > 0).any() for name in ("power", "shared_power")):
            raise ValueError("a power that is larger than that of smaller blocks")
        self._check_blocks(ones, events[:, 0])
        known = n.astype(np.float64)
        if self.refers:
            self._check_reference(ones["reference"]["given"], ones["reference"]["ones"], recall["moved"])
            known += np.where(recall["moved"] == 0, ones["reference"]["given"], 0)
        self._check_base(recall["base"], recall["due"], n, known)
        if self.watch_mix:
            mix = ones["mix"]
            if ((mix["ones"] < 0) | (mix["ones"] > mix["n"]) | (mix["n"] > taken[:, 0])).any():
                raise ValueError("a mix that does not fit the events since the restart")
            self._check_base(mix["base"], mix["due"], mix["n"], mix["n"])

    def _check_blocks(self, ones: Any, events: Any) -> None:
        """The present blocks, and pairs of blocks, hold no more than there were observations in them."""
        recall, shared = ones["recall"], ones["shared"]
        counted = [(recall, recall["phase"].astype(np.int64))] + ([(ones["mix"], events)] if self.watch_mix else [])
        at = events % SMALLEST
        stray = (recall["phase"] >= PERIOD).any() or (np.abs(shared["residual"]) > at + 1e-3).any()
        stray |= ((shared["block"] < 0) | (shared["block"] > at * self.estimate)).any()
        stray |= any((np.abs(shared[name]) > 1e9).any() for name in ("signed", "both"))
        size = SMALLEST ** np.arange(1, BLOCKS + 1)
        for part, observed in counted:
            observed = observed * self.estimate
            closed = (observed - observed % SMALLEST)[..., None] % (2 * size)
            signed, both = part["signed"].astype(np.int64), part["both"].astype(np.int64)
            first, second = both + signed, both - signed  # twice what the first block of a pair holds, and the second
            stray |= (part["block"] > observed % SMALLEST).any() or (first % 2 != 0).any()
            stray |= ((first < 0) | (first > 2 * np.minimum(closed, size))).any()
            stray |= ((second < 0) | (second > 2 * np.maximum(closed - size, 0))).any()
        if stray:
            raise ValueError("blocks of no stream")

    def _check_reference(self, given: Any, ones: Any, moved: Any) -> None:
        """The reference is that of the rules; or the stream's own, where streams have their own; or none."""
        own = ((given == np.asarray(self.given)) & (ones == np.asarray(self.given_ones))).all(1)
        if self.keyed:
            whole = (given == np.floor(given)) & (ones == np.floor(ones)) & (ones <= given) & (given <= 1e12)
            own = np.where((given > 0).all(1), whole.all(1), own)
        none = ~(given.any(1) | ones.any(1) | moved.any(1)) & (self.keyed or not self.hold)
        if not (own | none).all():
            raise ValueError("another reference than that of the rules")

    def _check_base(self, base: Any, due: Any, n: Any, known: Any) -> None:
        """A base that is in use is that of this number of observations, and will be brought up to date."""
        least = 0.99 * self.prior / (known + 2 * self.prior)
        if ((due > n) & ((base < least) | (1.0 - base < least - 1e-7))).any() or (
            due > 1.01 * (n + np.maximum(1.0, known * max(self.lag, self.given_lag)))
        ).any():
            raise ValueError("a base that was never brought up to date, or never will be")

    def _check_evidence(self, ones: Any, parts: list[Any]) -> None:
        """Evidence adds up, is below the alarm, and is no older than the stream since the restart."""
        recall, shared, taken = ones["recall"], ones["shared"], ones["shared"]["taken"][:, None]
        last = (taken - (taken - recall["last"].astype(np.int64)) % 2**32).astype(np.float64)
        mixed = [ones["mix"]["n"][:, None].astype(np.float64)] if self.watch_mix else []  # since both began
        events = [last, taken, *mixed, *mixed]
        for found, seen, watched in zip(parts, events, self.watched, strict=False):
            evidence = found["evidence"].astype(np.float64)
            totals = evidence.sum(-1)
            lanes = [name for name in ("evidence", "age", "seen", "right") if name in found.dtype.names]
            if any(found[name][..., ~watched].any() for name in lanes):
                raise ValueError("evidence for what is not watched")
            if (evidence > self.most).any():
                raise ValueError("evidence beyond the alarm")
            if (found["age"] > 1.01 * seen[..., None] * (evidence + NOTHING)).any():
                raise ValueError("evidence that is older than the stream")
            if (np.abs(totals - found["total"]) > 1e-4 * totals + NOTHING).any():
                raise ValueError("evidence that does not add up")
        if (np.abs(recall["total"].sum(1, dtype=np.float64) - shared["own"]) > 1e-6 * self.threshold).any():
            raise ValueError("evidence that does not add up")
        most = recall["n"][..., None] * (recall["evidence"].astype(np.float64) + NOTHING)
        if (recall["seen"] > 1.01 * most).any() or (recall["right"] > 1.01 * recall["seen"] + NOTHING).any():
            raise ValueError("more observations since a change than there were")
        if self.refers:
            back, age = (ones["reference"][name].astype(np.float64) for name in ("back", "back_age"))
            stray = ~((back >= 0) & (age >= 0)) | (recall["moved"] == 0) & (back > 0)
            if (stray | (back > self.threshold) | (age > 1.01 * last * (back + NOTHING))).any():
                raise ValueError("evidence of no recovery")


@lru_cache(maxsize=64)
def _dtype(classes: int, watch_mix: bool, watch_joint: bool, refers: bool) -> np.dtype[Any]:
    """The layout of a record; it is asked for with every drift and every state that is read."""
    lanes = [("evidence", "f4", LANES), ("age", "f4", LANES)]
    dispersion = [("squares", "f4", BLOCKS), ("pairs", "f4", BLOCKS)]
    recall = [
        ("n", "i8"),
        ("ones", "i8"),
        ("base", "f4"),
        ("due", "f4"),
        ("total", "f4"),
        ("last", "u4"),
        ("moved", "i1"),
        ("row", "u1"),
        ("phase", "u2"),
        ("block", "u1"),
        ("reach", "u1", 3),
        ("power", "f4", BLOCKS),
        ("shared_power", "f4", BLOCKS),
        *lanes,
        ("seen", "f4", LANES),
        ("right", "f4", LANES),
        ("signed", "i2", BLOCKS),
        ("both", "i2", BLOCKS),
        ("dispersion", dispersion),
    ]
    shared = [
        ("taken", "i8"),
        ("own", "f8"),
        ("total", "f4"),
        ("residual", "f4"),
        ("block", "f4"),
        *lanes,
        ("signed", "f4", BLOCKS),
        ("both", "f4", BLOCKS),
        ("dispersion", dispersion),
    ]
    mix = [
        ("n", "i8"),
        ("ones", "i8"),
        ("base", "f4"),
        ("due", "f4"),
        ("total", "f4"),
        ("power", "f4"),
        *lanes,
        ("signed", "i2", BLOCKS),
        ("both", "i2", BLOCKS),
        ("dispersion", dispersion),
        ("block", "u1"),
    ]
    head = [("key", "i8"), ("last", "i8"), ("events", "u8"), ("since", "u8")]
    fields: list[Any] = [
        ("head", head),
        ("counts", "i8", (classes, classes)),
        ("recall", np.dtype(recall, align=True), classes),
        ("shared", np.dtype(shared, align=True)),
    ]
    if watch_mix:
        fields.append(("mix", np.dtype(mix, align=True)))
    if watch_joint:
        fields.append(("joint", np.dtype([("total", "f8"), *lanes], align=True)))
    if refers:
        reference = [("given", "f4"), ("ones", "f4"), ("back", "f4"), ("back_age", "f4")]
        fields.append(("reference", np.dtype(reference), classes))
    return np.dtype(fields, align=True)
