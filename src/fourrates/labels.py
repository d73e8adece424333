"""Labels to class codes 0 .. K - 1, with errors that name the value and its position."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint16]

TIMES = np.datetime64, np.timedelta64  # streams of these must not pass for streams of numbers
MOST = 4_096  # labels; a detector's counts have the square of this, 134 MB
NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
LONGEST = 400  # characters of a number, and bits over ten thirds; a longer one is a label only if equal to one

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80
FOUR = ("tnr", "tpr", "npv", "ppv")  # in the order of the kernels, recalls by class, then precisions by class


def rate_names(labels: Sequence[Hashable]) -> tuple[str, ...]:
    """The names of the 2K rates, in the order of the kernels."""
    if len(labels) == 2:
        return FOUR
    names = [str(label) for label in labels]
    if len(set(names)) < len(names):  # such as 1 and "1"
        names = [repr(label) for label in labels]
    return tuple(f"{kind}:{name}" for kind in ("recall", "precision") for name in names)


class Labels:
    """The classes of a stream, in a fixed order.

    Parameters
    ----------
    labels : iterable of hashable
        At least two, all different. With two, the second is the positive class unless `positive` names the other.
    positive : label, optional
        The positive one of two labels.

    Attributes
    ----------
    given : tuple
        The labels as they were given.
    values : tuple
        The labels in the order of their codes.
    codes : dict
        From label to code. Anything equal to a label is that label, so True and 1.0 are the label 1. Text is read as
        the value it spells: "1", "1.0" and " true " are the label 1 too, and 1 is the label "1".
    """

    __slots__ = ("codes", "given", "spellings", "values")

    def __init__(self, labels: Iterable[Hashable], positive: Hashable = None) -> None:
        if isinstance(labels, str | bytes | set | frozenset) or not isinstance(labels, Iterable):
            raise TypeError(f"labels must be several labels in an order, such as a list, not {labels!r}")
        values = [plain(label) for label in labels]
        self.given = tuple(values)
        self.codes: dict[Hashable, int] = {}
        for position, label in enumerate(values):
            if label is None or label != label or not isinstance(label, Hashable) or isinstance(label, TIMES):
                raise ValueError(f"{label!r} at position {position} of labels cannot be a label")
            if label in self.codes:
                raise ValueError(f"label {label!r} at position {position} of labels is there twice")
            self.codes[label] = position
        if not 2 <= len(values) <= MOST:
            raise ValueError(f"{len(values)} labels; at least two and at most {MOST:,} are possible")
        if positive is not None:
            if len(values) > 2:
                raise ValueError(f"positive {positive!r} goes with two labels, not with {len(values)}")
            if self.code(positive) < 0:
                raise ValueError(f"positive {positive!r} is not one of {tuple(values)!r}")
            values.sort(key=lambda label: label == positive)
            self.codes = {label: code for code, label in enumerate(values)}
        self.values = tuple(values)
        spelled = [_spelled(label) for label in values]
        self.spellings = {
            text: code for code, text in enumerate(spelled) if spelled.count(text) == 1 and text is not None
        }

    def encode(self, array: npt.ArrayLike, name: str) -> Codes:
        """The codes of a one-dimensional array of labels, or a ValueError that names the first bad one."""
        if isinstance(array, list | tuple):  # an array of them might turn 1 into "1", or tuples into a dimension
            return self._one_by_one(array, name)
        if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
            raise self.unknown("masked", name, int(np.ma.getmaskarray(array).argmax()))
        values = np.asarray(array)
        if values.ndim != 1:
            raise ValueError(f"{name} has {values.ndim} dimensions, not one")
        if values.dtype.kind in "mM":
            raise TypeError(f"{name} is an array of {values.dtype}: times cannot be labels")
        if values.size == 0:
            return np.empty(0, np.uint16)
        if values.dtype.kind in "biu" and self.values == tuple(range(len(self.values))):
            codes, bad = small_codes(values, len(self.values))
            if bad >= 0:
                raise self.unknown(values[bad].item(), name, bad)
            return codes
        if (known := self._sorted(values.dtype)) is not None:
            labels, order = known
            values = values.astype(labels.dtype, copy=False) if values.dtype.kind in "biuf" else values
            found = np.minimum(np.searchsorted(labels, values), labels.size - 1)
            if (labels[found] == values).all():
                return order[found].astype(np.uint16)
        return self._one_by_one(values.tolist(), name)

    def decode(self, codes: Codes) -> npt.NDArray[Any]:
        """The labels of an array of codes, unchanged, of one dtype if all are of one type, objects otherwise."""
        if len({type(label) for label in self.values}) == 1 and not isinstance(self.values[0], tuple):
            return np.array(self.values)[codes]
        labels = np.empty(len(self.values), object)
        labels[:] = self.values
        return labels[codes]

    def _one_by_one(self, labels: Sequence[object], name: str) -> Codes:
        coded = [self.read(label) for label in labels]
        if -1 in coded:
            bad = coded.index(-1)
            raise self.unknown(labels[bad], name, bad)
        return np.array(coded, np.uint16)

    def unknown(self, label: object, name: str, position: int | None = None) -> ValueError:
        """The error for an unknown label."""
        return ValueError(("" if position is None else f"position {position}: ") + self.problem(label, name))

    def problem(self, label: object, name: str) -> str:
        """The message for an unknown label in a column, the same at every door."""
        known = ", ".join(map(str, self.values[:20])) + (" ..." if len(self.values) > 20 else "")
        return f"{shown(label)} in column {name!r} is not one of the labels {known}"

    def read(self, value: Any) -> int:
        """The code of a value that equals a label or is spelled like one; -1 if there is none.

        Examples
        --------
        >>> from fourrates.labels import Labels
        >>> [Labels([0, 1]).read(value) for value in (1.0, "1", " True ", "1.00", "yes", None)]
        [1, 1, 1, 1, -1, -1]
        """
        found = self.code(value)
        if found >= 0 or (spelled := _spelled(value)) is None:
            return found
        if isinstance(spelled, tuple):  # true or false, which also match 1 and 0
            truth = spelled[1]
            return self.spellings.get(spelled, self.codes.get(truth, self.spellings.get(Decimal(int(truth)), -1)))
        return self.spellings.get(spelled, self.codes.get(spelled, -1))

    def code(self, label: Any) -> int:
        """The code of a value that equals a label, or -1 if there is none."""
        if type(label) is np.timedelta64:  # to NumPy before 2 one that lasts 1 is equal to 1
            return -1
        try:
            return self.codes.get(label, -1)
        except TypeError:  # unhashable
            return -1

    def copy(self, codes: Codes, name: str) -> Codes:
        """A checked copy of codes; a ValueError names the first invalid one."""
        copied, bad = small_codes(codes, len(self.values))
        if bad >= 0:
            raise ValueError(f"{name}: code {codes[bad]} at position {bad} is not below {len(self.values)}")
        return copied

    def _sorted(self, dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """The labels that an array of this type can hold exactly, sorted, with their codes; None if unsuitable."""
        kind = dtype.kind
        if kind in "US":
            text = str if kind == "U" else bytes
            if not all(type(label) is text and label[-1:] not in ("\0", b"\0") for label in self.values):
                return None  # an array forgets zeros at the end
            labels, codes = np.array(self.values), np.arange(len(self.values))
        elif kind in "biuf" and dtype.itemsize <= 8:
            if not all(isinstance(label, bool | int | float) for label in self.values):
                return None
            exact = np.dtype({"u": np.uint64, "f": np.float64}.get(kind, np.int64))
            held = [code for code, label in enumerate(self.values) if _is_held(label, exact)]
            if not held:
                return None
            labels, codes = np.array([self.values[code] for code in held], exact), np.array(held)
        else:
            return None
        order = np.argsort(labels)
        return labels[order], codes[order]


def _is_held(label: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a numeric type can hold this label."""
    if dtype.kind == "f":
        try:
            return bool(float(label) == label)
        except OverflowError:
            return False
    return (not isinstance(label, float) or label.is_integer()) and np.iinfo(dtype).min <= label <= np.iinfo(dtype).max


def _spelled(value: Any) -> Hashable:
    """The value that a text spells, numbers exactly as decimals; None if no label can be spelled so."""
    value = plain(value)
    if isinstance(value, str):
        text = value.strip()
        if (lower := text.lower()) in ("true", "false"):
            return bool, lower == "true"
        return Decimal(text) if len(text) <= LONGEST and NUMBER.fullmatch(text) else text
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, int):
        return Decimal(value) if value.bit_length() <= 3 * LONGEST else None
    if isinstance(value, float):
        return Decimal(repr(value)) if np.isfinite(value) else None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return str(value) if isinstance(value, date) else None


def shown(value: object) -> str:
    """A value for a message, shortened if need be."""
    if isinstance(value, Decimal | date):
        return repr(str(value))
    try:
        return _short.repr(plain(value))
    except ValueError:  # an integer with too many digits for Python to print
        return "a very large number"


def plain(value: Any) -> Any:
    """A NumPy scalar as its Python equivalent; anything else, and a time, unchanged."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, TIMES) else value


def small_codes(values: npt.NDArray[Any], classes: int) -> tuple[Codes, int]:
    """Whole numbers as class codes, and the position of the first invalid one, or -1.

    An array may change while it is read, so the checked copy is the one used.
    """
    own = np.array(values)
    bad = (own < 0) | (own >= classes)
    return own.astype(np.uint16), int(bad.argmax()) if bad.any() else -1
