"""Bad rows: how many, which, and why; a sentence only on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]

Bad = Literal["reject", "skip", "keep"]
"""A bad row rejects its batch, is left out and counted, or also handed on with its reason."""
BAD: tuple[Bad, ...] = get_args(Bad)
SHOWN = 20  # bad rows that are described
UNLABELLED = "unlabelled"


class InputError(ValueError):
    """Input that cannot be used; the message names the problem, the file and the line."""

    __module__ = "fourrates.io"


class NoColumn(InputError):
    """A named column does not exist."""

    __module__ = "fourrates.io"

    def __init__(self, where: str, name: str, there: str) -> None:
        super().__init__(f"{where}no column {name!r}; there are {there}")
        self.name = name


class TooFewClasses(InputError):
    """The data does not show two classes yet."""

    __module__ = "fourrates.io"


def check_bad(bad: str) -> None:
    if bad not in BAD:
        raise ValueError(f"bad {bad!r} is not one of {BAD}")


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be used, with its position, the column at fault, a code for the problem, and a sentence."""

    row: int
    column: str
    code: str
    problem: str


class BadRows:
    """The bad rows of a table, by the first problem of each; an unlabelled row rejects nothing."""

    __slots__ = ("_kinds", "counts", "mask")

    def __init__(self, size: int) -> None:
        self.mask: Mask = np.zeros(size, np.bool_)
        self.counts: Counter[str] = Counter()
        self._kinds: list[tuple[Mask, str, str, Callable[[int], str]]] = []

    def add(self, mask: Mask | None, column: str, code: str, describe: Callable[[int], str]) -> None:
        """Note the rows of a mask (None for none) that have no problem yet; `describe` explains one."""
        if mask is None or not mask.any():
            return
        new = mask & ~self.mask
        if count := int(new.sum()):
            self.mask |= new
            self.counts[code] += count
            self._kinds.append((new, column, code, describe))

    def __len__(self) -> int:
        return sum(self.counts.values())

    @property
    def rejected(self) -> int:
        """How many rows are bad; unlabelled ones are not."""
        return len(self) - self.counts[UNLABELLED]

    @property
    def kept(self) -> Mask | None:
        """Which rows are valid; None if all are."""
        return ~self.mask if self.counts else None

    def __getitem__(self, row: int) -> BadRow:
        for mask, column, code, describe in self._kinds:
            if mask[row]:
                return BadRow(row, column, code, describe(row))
        raise KeyError(row)

    def lacking(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for mask, column, code, _ in self._kinds:
            if code in (UNLABELLED, "missing"):
                found[column] += int(mask.sum())
        return found

    @property
    def first(self) -> BadRow | None:
        """The first bad row; None if there is none. Unlabelled rows do not count."""
        return next(self.several(1), None)

    def several(self, most: int = SHOWN, unlabelled: bool = False) -> Iterator[BadRow]:
        """The first bad rows, in order; with unlabelled ones on request."""
        wanted = np.flatnonzero(self.mask) if unlabelled else self.rejected_rows()
        return (self[row] for row in wanted[:most].tolist())

    def rejected_rows(self) -> npt.NDArray[np.int64]:
        """The bad rows, in order; unlabelled ones are not."""
        bad = [mask for mask, _, code, _ in self._kinds if code != UNLABELLED]
        return np.flatnonzero(np.logical_or.reduce(bad)) if bad else np.empty(0, np.int64)
