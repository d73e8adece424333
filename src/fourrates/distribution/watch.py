"""A stream watched by windows, a reference window against the latest one, by any test that can compare two of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fourrates.distribution.examples import Examples, check


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two windows.

    Attributes
    ----------
    statistic : float
        The test's own; larger speaks for a change.
    p_value : float
        How probable a statistic at least as large is if nothing changed.
    split : int or None
        The first row of the new distribution, counted over both windows; None if the test does not date it.
    """

    statistic: float
    p_value: float
    split: int | None = None


@dataclass(frozen=True, slots=True)
class Alarm:
    """A change found in a stream. It can be used as a position, as in `evaluate.score`.

    Attributes
    ----------
    at : int
        The last row of the latest window, counted from 0 since construction or the last reset.
    p_value : float
        The p-value of its comparison.
    reference : range or None
        Rows of the reference window; None if it was given with `fit`.
    latest : range
        Rows of the latest window.
    started : int or None
        The first row of the new distribution, if the test dates it.
    """

    at: int
    p_value: float
    reference: range | None
    latest: range
    started: int | None = None

    def __index__(self) -> int:
        return self.at


@dataclass(eq=False, repr=False, kw_only=True)
class WindowWatch(BaseEstimator, ABC):
    """Compares the latest rows of a stream with its first ones, the reference, again and again.

    Each comparison is made at `level`, so that a stream without changes has an alarm in about one of 1 / `level`
    comparisons. After an alarm the reference is filled again from the rows that follow.

    Parameters
    ----------
    level : float
        The level of each comparison in a stream.
    window : int
        Rows of the reference window and of the latest one, in a stream.
    step : int, optional
        Rows between two comparisons in a stream; the window if not given, so that no row is compared twice.
    seed : int
        Seed of all random numbers; the same rows give the same p-value.
    """

    level: float = 0.05
    window: int = 200
    step: int | None = None
    seed: int = 0

    _reference: Examples | None = field(default=None, init=False)  # complete, or None while it is filled
    _given: bool = field(default=False, init=False)  # whether the reference was given to `fit`
    _recent: Examples | None = field(default=None, init=False)  # rows after the reference, or those that fill it
    _seen: int = field(default=0, init=False)  # rows so far
    _next: int = field(default=0, init=False)  # rows of the stream at which the next comparison is due

    @abstractmethod
    def _compare(self, reference: Examples, latest: Examples) -> Comparison:
        """Compare two windows."""

    def _check_settings(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level {self.level} is not in (0, 1)")
        if self.window < self._least:
            raise ValueError(f"window {self.window}: this test needs at least {self._least} rows")
        if self.step is not None and self.step < 1:
            raise ValueError(f"step {self.step}: at least 1 row must lie between two comparisons")
        if (permutations := getattr(self, "permutations", 1)) < 1:
            raise ValueError(f"permutations {permutations}: a p-value needs at least 1")

    @property
    def _least(self) -> int:
        """The fewest rows of a window."""
        return 20

    def reset(self) -> Self:
        """Forget the stream, and the reference too unless it was given."""
        self._recent = None
        self._seen = self._next = 0
        if not self._given:
            self._reference = None
        return self

    def update_many(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> list[Alarm]:
        """Read the next rows of the stream, and return the alarms among them.

        The alarms are the same for portions of any size. A rejected portion changes nothing.

        Parameters
        ----------
        X : array, rows by features
            The next examples.
        y : array of labels, optional
            Theirs; always or never.
        """
        self._check_settings()
        new = check(X, y, first=self._seen)
        reference, recent, due = self._reference, self._recent, self._next
        given = self._given
        self._check_alike(new)
        recent = new if recent is None else recent.followed_by(new)
        end = self._seen + len(new)
        alarms: list[Alarm] = []
        while True:
            if reference is None:
                if len(recent) < self.window:
                    break
                reference, recent, given = recent.rows(0, self.window), recent.rows(self.window, len(recent)), False
                due = recent.first + self.window
            due = max(due, recent.first + self.window)
            if end < due:
                break
            start = due - self.window - recent.first
            latest = recent.rows(start, start + self.window)
            found = self._compare(reference, latest)
            if found.p_value <= self.level:
                alarms.append(self._alarm(found, reference, given, latest))
                reference, recent = None, recent.rows(start + self.window, len(recent))
            else:
                due += self.step or self.window
        self._reference, self._given, self._seen, self._next = reference, given, end, due
        self._recent = recent.newest(self.window)
        return alarms

    def update(self, x: npt.ArrayLike, y: object = None) -> Alarm | None:
        """Read the next row, and return its alarm, if any."""
        alarms = self.update_many(np.asarray(x)[None], None if y is None else np.asarray([y]))
        return alarms[0] if alarms else None

    def _check_alike(self, new: Examples) -> None:
        """Check that new rows have the features of those before, and labels always or never."""
        for old in (self._reference, self._recent):
            if old is None:
                continue
            if new.features.shape[1] != old.features.shape[1]:
                raise ValueError(
                    f"{new.name} has {new.features.shape[1]} features from row {new.first} on; "
                    f"there were {old.features.shape[1]} before"
                )
            if (new.labels is None) != (old.labels is None):
                raise ValueError(f"labels are given always or never; from row {new.first} on that is different")

    @staticmethod
    def _alarm(found: Comparison, reference: Examples, given: bool, latest: Examples) -> Alarm:
        # The rows between the windows were compared before and found alike, so the change is in the latest ones.
        started = None if found.split is None else latest.first + max(0, found.split - len(reference))
        rows = None if given else range(reference.first, reference.first + len(reference))
        last = latest.first + len(latest)
        return Alarm(last - 1, found.p_value, rows, range(latest.first, last), started)
