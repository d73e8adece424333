"""Examples ready for the tests: checked, on one scale, and with their labels as columns beside the features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows of features, their labels if any, the number of the first row, and the name of the features in errors."""

    features: Array
    labels: Labels | None = None
    first: int = 0
    name: str = "X"

    def __len__(self) -> int:
        return len(self.features)

    @property
    def place(self) -> str:
        """Which rows, in words."""
        return f"rows {self.first} to {self.first + len(self) - 1}{self.name.removeprefix('X')}"

    def rows(self, start: int, stop: int) -> Examples:
        """Some of them, counted from the first."""
        labels = None if self.labels is None else self.labels[start:stop]
        return Examples(self.features[start:stop], labels, self.first + start, self.name)

    def newest(self, rows: int) -> Examples:
        """The last rows up to this number, copied so that the others can be freed."""
        own = self.rows(max(0, len(self) - rows), len(self))
        labels = None if own.labels is None else own.labels.copy()
        return Examples(own.features.copy(), labels, own.first, own.name)

    def followed_by(self, later: Examples) -> Examples:
        """These and the later ones."""
        labels = None
        if self.labels is not None and later.labels is not None:
            labels = np.concatenate([self.labels, later.labels])
        return Examples(np.concatenate([self.features, later.features]), labels, self.first, self.name)


def check(X: npt.ArrayLike, y: npt.ArrayLike | None, *, first: int = 0, name: str = "X") -> Examples:
    """Features and labels as arrays, or an error that names the problem and its place."""
    try:
        features = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a table of numbers: {error}") from None
    if features.ndim == 1:
        features = features[:, None]
    if features.ndim != 2 or features.shape[1] == 0:
        raise ValueError(f"{name} has the shape {features.shape}; rows by features are accepted, one feature at least")
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        row, column = bad[0]
        value = features[row, column]
        raise ValueError(f"{name} is {value} at row {first + row}, feature {column}; {len(bad)} values are not finite")
    return Examples(features, None if y is None else _labels(y, len(features), first), first, name)


def _labels(y: npt.ArrayLike, rows: int, first: int) -> Labels:
    labels = np.asarray(y)
    if labels.shape != (rows,):
        raise ValueError(f"y has the shape {labels.shape}; X has {rows} rows, and there must be one label for each")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"y is {labels[~np.isfinite(labels)][0]} at row {first + np.argmin(np.isfinite(labels))}")
    return labels


def together(*parts: Examples) -> Examples:
    """Concatenate some examples; an error if a feature is constant over all of them, or the labels are of one class."""
    examples = reduce(Examples.followed_by, parts)
    where = " and ".join(part.place for part in parts)
    constant = np.flatnonzero(np.ptp(examples.features, axis=0) == 0)
    if len(constant):
        column = constant[0]
        raise ValueError(
            f"X is constant in {where}: feature {column} is always {examples.features[0, column]:g}"
            f"{f', and so are {len(constant) - 1} others' if len(constant) > 1 else ''}; leave it out"
        )
    if examples.labels is not None and (classes := np.unique(examples.labels)).size == 1:
        only = classes.tolist()[0]
        raise ValueError(f"y has one class only in {where}: {only!r}; leave y out, or take a longer window")
    return examples


def joined(examples: Examples) -> Array:
    """Features and label (a column for each class if there are more than two), each with mean 0 and deviation 1."""
    columns = [examples.features]
    if examples.labels is not None:
        columns.append(_indicators(examples.labels))
    return _standardised(np.concatenate(columns, axis=1))


def crossed(examples: Examples) -> Array:
    """The same, and the product of each feature with each column of the label.

    To a linear rule these are the features of each class. Without them it is blind to concept drift, a change of P(y |
    X) while P(X) and P(y) stay.
    """
    if examples.labels is None:
        return joined(examples)
    features, labels = _standardised(examples.features), _standardised(_indicators(examples.labels))
    products = [_standardised(features * column[:, None], strict=False) for column in labels.T]
    return np.concatenate([features, labels, *products], axis=1)


def _indicators(labels: Labels) -> Array:
    classes, codes = np.unique(labels, return_inverse=True)
    columns: Array = np.eye(classes.size)[codes]
    return columns[:, 1:] if classes.size == 2 else columns


def _standardised(columns: Array, strict: bool = True) -> Array:
    deviation = columns.std(axis=0)
    if not strict:
        deviation = np.where(deviation > 0, deviation, 1.0)
    found: Array = (columns - columns.mean(axis=0)) / deviation
    return found
