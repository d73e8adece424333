"""What a monitor needs to read bodies, and the parts of a row that only the service has: ids, names of segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.bank.keys import canonical
from fourrates.events.columns import listed_values
from fourrates.events.labels import LabelEncoder
from fourrates.labels import shown
from fourrates.serve.batch import INTEGERS, JSON, TEXTS, Ids
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.clock import Unit
    from fourrates.events.dates import Order
    from fourrates.events.rows import Mask

LONGEST = 1_000  # bytes of an id


class Plan:
    """What is needed to read bodies of one monitor.

    Attributes
    ----------
    encoder : LabelEncoder
        Its labels.
    by : list of str
        The columns that make a segment.
    threshold : float
        The score from which on the positive label is predicted.
    unit, dates
        What its first body has shown about times, as :class:`~fourrates.events.clock.Clock` has it.
    """

    def __init__(self, config: MonitorConfig) -> None:
        self.encoder = LabelEncoder(config.made_labels())
        self.by = config.by
        self.threshold = config.threshold
        self.unit: Unit | None = None
        self.dates: Order | None = None


def segment_name(values: Any) -> str:
    """The values that make a segment, in the order of `by`, as one text."""
    several = values if isinstance(values, tuple | list) else (values,)
    plain = [value if isinstance(value, str | bool) else canonical(value) for value in several]
    return msgspec.json.encode(plain, enc_hook=str).decode()


def bad_ids(column: Any) -> tuple[Mask | None, Any]:
    """Where an id is none, and how one of those is put into words."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        return None, None
    values = listed_values(column)
    bad = np.array([not _is_id(value) for value in values], np.bool_)
    return bad, lambda row: f"{shown(values[row])} in column 'id' is no number or text of up to {LONGEST:,} bytes"


def _is_id(value: Any) -> bool:
    if type(value) is int:
        return value.bit_length() < 8 * LONGEST
    if type(value) is str:
        if len(value) <= LONGEST // 4 or len(value) > LONGEST:  # bytes are as many, or up to four times
            return len(value) <= LONGEST
        return len(value.encode("utf-8", "surrogatepass")) <= LONGEST
    return isinstance(value, float) and math.isfinite(value)


def ids_of(column: Any, most: int) -> Ids:
    """Ids in the form of the journal; an ApiError if they make more than `most` bytes."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.dtype != np.uint64:
        return Ids(INTEGERS, column.astype("<i8").tobytes())
    values: Sequence[Any] = listed_values(column)
    kinds = {*map(type, values)}
    try:
        if kinds == {int}:
            return Ids(INTEGERS, np.array(values, "<i8").tobytes())
        if kinds == {str}:
            if sum(map(len, values)) <= most:
                return _texts([value.encode() for value in values])
            raise ApiError(413, "too_large", f"ids of more than {most:,} bytes", {"limit": most})
    except (OverflowError, UnicodeEncodeError):  # beyond 64 bits; half of a surrogate pair
        pass
    try:
        return Ids(JSON, msgspec.json.encode(values))
    except (ValueError, OverflowError, TypeError) as error:
        raise ApiError(422, "bad_id", f"id: {error}") from None


def _texts(values: list[bytes]) -> Ids:
    edges: npt.NDArray[np.int64] = np.zeros(len(values) + 1, np.int64)
    np.cumsum([*map(len, values)], out=edges[1:])
    return Ids(TEXTS, b"".join(values), edges.astype("<u4").tobytes())
