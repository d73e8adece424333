"""Predictions that wait for their labels, with the examples they were made for.

:class:`~fourrates.LabelJoin` keeps what was said of an id; here the features are kept as well, and what was said may
have to be asked again of a newer model, so what waits is whole batches of rows and where in them each id stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.rows import join, take

if TYPE_CHECKING:
    import numpy.typing as npt

UNKNOWN = -1  # what the serving model says, where it has not been asked


class Asked:
    """What one call of `predict` asked, as far as its labels have not come."""

    __slots__ = ("guesses", "ids", "life", "rows", "waiting")

    def __init__(self, rows: Any, guesses: npt.NDArray[np.int32], ids: list[Hashable], life: int) -> None:
        self.rows, self.guesses, self.ids, self.life = rows, guesses, ids, life
        self.waiting = len(ids)


class Pending:
    """Predictions that wait for their labels, in the order they were made."""

    def __init__(self) -> None:
        self._places: dict[Hashable, tuple[Asked, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, one: Hashable) -> bool:
        return one in self._places

    def add(self, asked: Asked) -> None:
        """Let these wait."""
        for row, one in enumerate(asked.ids):
            self._places[one] = asked, row

    def get(self, ids: list[Hashable], life: int) -> tuple[Any, npt.NDArray[np.int32]]:
        """The examples with these ids, and what was said of each if that was in this life of the model."""
        groups: dict[int, tuple[Asked, list[int], list[int]]] = {}
        for position, one in enumerate(ids):
            asked, row = self._places[one]
            _, positions, rows = groups.setdefault(id(asked), (asked, [], []))
            positions.append(position)
            rows.append(row)
        order = np.argsort(np.concatenate([positions for _, positions, _ in groups.values()]))
        examples = join([take(asked.rows, np.array(rows)) for asked, _, rows in groups.values()])
        guesses = [np.where(asked.life == life, asked.guesses[rows], UNKNOWN) for asked, _, rows in groups.values()]
        return take(examples, order), np.concatenate(guesses)[order].astype(np.int32)

    def forget(self, ids: Iterable[Hashable]) -> None:
        """Let go of these."""
        for one in ids:
            asked, _ = self._places.pop(one)
            asked.waiting -= 1
            if 2 * asked.waiting <= len(asked.ids) and asked.waiting:
                self._compact(asked)

    def oldest(self, number: int) -> list[Hashable]:
        """The ids that wait longest."""
        return [one for one, _ in zip(self._places, range(number), strict=False)]

    def _compact(self, asked: Asked) -> None:
        """Let go of the rows whose labels came, so that what is kept is at most twice what waits."""
        nowhere = (None, 0)
        rows = np.array([row for row, one in enumerate(asked.ids) if self._places.get(one, nowhere)[0] is asked])
        asked.rows, asked.guesses = take(asked.rows, rows), asked.guesses[rows]
        asked.ids = [asked.ids[row] for row in rows]
        self.add(asked)


def list_of_ids(ids: Iterable[Hashable]) -> list[Hashable]:
    """Ids as a list, none of them twice."""
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids must be several, such as a list, not {ids!r}")
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if len(set(names)) < len(names):
        twice = next(one for one, times in Counter(names).items() if times > 1)
        raise ValueError(f"id {twice!r} is there twice")
    return names
