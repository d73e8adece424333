"""Columns of any transport, with checks before conversion, distinct values, numbers.

A column is a list, a NumPy array or an Arrow array. Only the types listed here are converted, as some others crash
pyarrow, and the rest have no meaning as a label, a score or a time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.events.rows import InputError, Mask
from fourrates.labels import plain, shown
from fourrates.lazy import install

COMMA = re.compile(r"[-+]?\d*,\d+")  # a number with a decimal comma
ARROW_FLOATS = {"halffloat": "f2", "float": "f4", "double": "f8"}  # integers have NumPy's names
EMPTY = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none", "<NA>", "#N/A")
ARROW_KINDS = re.compile(
    r"bool|u?int\d+|halffloat|float|double|decimal\d*\(.*\)|(large_)?string(_view)?|timestamp\[.*\]|date\d\d\[.*\]|null"
)
LONGEST_TEXTS = 2**31 - 1  # bytes of all texts of a column, the limit of Arrow's `string`
READ = "numbers, text, times and truth values are read"


@functools.cache  # called for every column of every message
def pyarrow(module: str) -> Any:
    """A module of pyarrow, or an error that explains how to install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(f"reading files needs pyarrow: {install('io')}") from None


def checked_column(column: Any, name: str, validate: bool = True) -> Any:
    """A column of a supported type, in a form that is quick to read; an InputError names an unsupported one.

    With `validate` every value of an Arrow array is checked, as a wrong offset could read any memory.
    """
    if isinstance(column, list | tuple):
        return column if isinstance(column, list) else list(column)
    if isinstance(column, np.ndarray):
        return _checked_array(column, name)
    if not (hasattr(column, "type") and hasattr(column, "null_count")):
        raise InputError(f"column {name!r} is a {type(column).__name__}; {READ}")
    pa = pyarrow("pyarrow")
    kind = column.type
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not ARROW_KINDS.fullmatch(str(inner)):
        raise InputError(f"column {name!r} is of type {str(column.type)[:80]}; {READ}")
    try:
        if validate:
            column.validate(full=True)
        if hasattr(column, "chunks"):
            column = column.unify_dictionaries().combine_chunks() if column.num_chunks else pa.array([], column.type)
        while isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        return _quick_form(column)
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} is damaged: {str(error).splitlines()[0][:200]}") from None


def _checked_array(column: npt.NDArray[Any], name: str) -> Any:
    if column.ndim != 1:
        raise InputError(f"column {name!r} has {column.ndim} dimensions, not one")
    if column.dtype.kind not in "biufOUSTM" or (column.dtype.itemsize > 8 and column.dtype.kind == "f"):
        raise InputError(f"column {name!r} is of type {column.dtype}; {READ}")
    if isinstance(column, np.ma.MaskedArray):
        return column.tolist()
    return column.tolist() if column.dtype.kind in "OST" else column


def _quick_form(column: Any) -> Any:
    """A NumPy array if lossless, so that the kernel reads the values in place."""
    kind = str(column.type)
    if kind == "null":
        return [None] * len(column)
    if kind.startswith(("decimal32", "decimal64")):  # unsupported by Arrow's encoder
        return column.to_pylist()
    if text_bytes(column) > LONGEST_TEXTS:  # Arrow would wrap around, and crash later
        raise InputError(f"texts of more than {LONGEST_TEXTS:,} bytes in one column")
    if kind in ("large_string", "string_view"):
        return column.cast("string")
    if kind == "halffloat":
        return arrow_numbers(column, np.nan).astype(np.float64)
    if kind.startswith(("int", "uint")) and not column.null_count:
        return arrow_numbers(column, 0)
    return column


def text_bytes(column: Any) -> int:
    """The expanded size of text views, many of which may share the same few bytes; 0 for other columns."""
    while hasattr(column, "storage") or hasattr(column, "dictionary"):
        column = column.storage if hasattr(column, "storage") else column.dictionary
    if str(column.type) != "string_view":
        return 0
    lengths = np.frombuffer(column.buffers()[1] or b"", "<u4")[::4]
    return int(lengths[column.offset : column.offset + len(column)].sum(dtype=np.int64))


def is_missing(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value is None or value.strip() in EMPTY
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA, which is neither equal to itself nor not; arrays
        return type(value).__name__ == "NAType"


def is_null(value: Any) -> bool:
    """Whether a value is missing; text never is."""
    return not isinstance(value, str) and is_missing(value)


def item(column: Any, at: int) -> Any:
    """One value of a column as a Python object."""
    if isinstance(column, list | np.ndarray):
        return plain(column[at])
    if hasattr(column, "dictionary"):
        place = column.indices[at].as_py()
        return None if place is None else item(column.dictionary, place)
    return _listed(column.slice(at, 1))[0]


def pick(column: Any, rows: npt.NDArray[np.int64]) -> Any:
    if isinstance(column, list):
        return [column[row] for row in rows.tolist()]
    return column[rows] if isinstance(column, np.ndarray) else column.take(pyarrow("pyarrow").array(rows))


def listed_values(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    return column.tolist() if isinstance(column, np.ndarray) else _listed(column)


def _listed(column: Any) -> list[Any]:
    """The values of an Arrow array; its own conversion of times needs pandas, or fails for far dates."""
    if hasattr(column, "dictionary"):
        values = [*_listed(column.dictionary), None]
        return [values[at] for at in arrow_numbers(column.indices.cast("int64"), len(values) - 1).tolist()]
    if str(column.type).startswith(("timestamp", "date")):
        return _as_dates(arrow_moments(column), getattr(column.type, "tz", None) is not None)
    return [plain(value) for value in column.to_pylist()]


def _as_dates(moments: npt.NDArray[np.datetime64], utc: bool) -> list[Any]:
    """Dates and times as Python objects, or as text if out of their range."""
    fine = moments.astype("M8[us]") if np.datetime_data(moments.dtype)[0] == "ns" else moments
    values: list[Any] = fine.tolist()
    for at, value in enumerate(values):
        if isinstance(value, int):
            values[at] = str(fine[at])
        elif utc and isinstance(value, datetime):
            values[at] = value.replace(tzinfo=UTC)
    return values


def distinct(column: Any, most: int = 9, look: int = 10_000) -> list[Any]:
    """The first few different values at the start of a column."""
    values = listed_values(column[:look])
    return list(islice(dict.fromkeys(value for value in values if isinstance(value, Hashable)), most))


def single_letters(column: Any) -> npt.NDArray[np.uint8] | None:
    """The bytes of a column of one-letter strings without gaps, the common case of 0 and 1 as text."""
    if str(getattr(column, "type", "")) != "string" or column.null_count or not len(column):
        return None
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    # One byte for each string on average, and none is empty, so one byte each.
    if data is None or edges[-1] - edges[0] != len(column) or not (edges[1:] > edges[:-1]).all():
        return None
    return np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]


def arrow_numbers(array: Any, missing: float) -> npt.NDArray[Any]:
    """The numbers of an Arrow array in place; copied, with `missing` instead of nulls, if there are any.

    Arrow's own `to_numpy`, and in pyarrow 16 `to_pandas_dtype` too, imports pandas if installed, which takes longer
    than a million rows.
    """
    kind = np.dtype(ARROW_FLOATS.get(str(array.type), str(array.type)))
    buffer = array.buffers()[1]
    if buffer is None:  # no rows
        return np.full(len(array), missing, kind)
    numbers = np.frombuffer(buffer, kind)[array.offset : array.offset + len(array)]
    gone = arrow_nulls(array)
    return numbers if gone is None else np.where(gone, numbers.dtype.type(missing), numbers)


def arrow_nulls(array: Any) -> Mask | None:
    """The nulls of an Arrow array; None without any."""
    if not array.null_count:
        return None
    return np.from_dlpack(array.is_null().cast("uint8")).view(np.bool_)


def arrow_moments(column: Any) -> npt.NDArray[np.datetime64]:
    """An Arrow column of dates or times in its own unit, without pyarrow.compute, which is slow to import."""
    pa = pyarrow("pyarrow")
    numbers = pa.int32() if str(column.type).startswith("date32") else pa.int64()
    unit: Any = getattr(column.type, "unit", "D" if numbers == pa.int32() else "ms")
    since_1970 = arrow_numbers(column.view(numbers), 0).astype(np.int64, copy=False).view(f"M8[{unit}]")
    gone = arrow_nulls(column)
    return since_1970 if gone is None else np.where(gone, np.datetime64("NaT", unit), since_1970)


def distinct_values(
    column: Any, missing: Callable[[Any], bool] = is_null
) -> tuple[list[Any], npt.NDArray[Any], Mask | None]:
    """Distinct values, each row's position among them (or one past the end), and the mask of missing rows."""
    values, positions = _distinct(column)
    gone = positions == len(values)
    if words := [at for at, value in enumerate(values) if missing(value)]:
        gone |= np.isin(positions, words)
    return values, positions, gone if gone.any() else None


def _distinct(column: Any) -> tuple[list[Any], npt.NDArray[Any]]:
    """Distinct values, and each row's position among them; one past the end for a null."""
    if isinstance(column, list):
        return _distinct_in_list(column)
    if not isinstance(column, np.ndarray):
        if str(column.type).startswith(("timestamp", "date")):
            unique, positions = np.unique(arrow_moments(column), return_inverse=True)
            return _as_dates(unique, getattr(column.type, "tz", None) is not None), positions
        encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        positions = encoded.indices
        if positions.null_count:  # one past the end may not fit into a small integer
            positions = positions.cast("int64")
        values = _listed(encoded.dictionary)
        return values, arrow_numbers(positions, len(values))
    if column.dtype.kind in "iu" and column.size and int(column.max()) - int(column.min()) < column.size:
        return _close_integers(column)
    unique, positions = np.unique(column, return_inverse=True)
    return _as_dates(unique, False) if column.dtype.kind == "M" else unique.tolist(), positions


def _distinct_in_list(column: list[Any]) -> tuple[list[Any], npt.NDArray[Any]]:
    kinds = {*map(type, column)}
    if kinds == {int}:
        with suppress(OverflowError):  # beyond 64 bits
            return _distinct(np.array(column, np.int64))
    if kinds == {str}:
        places = {text: place for place, text in enumerate(dict.fromkeys(column))}
        return [*places], np.array([places[text] for text in column])
    known: dict[tuple[type, str], int] = {}  # by text, whose hash is seeded
    met: list[Any] = []
    positions = np.empty(len(column), np.int64)
    for at, value in enumerate(column):
        text = value if isinstance(value, str) else shown(value) if isinstance(value, list | dict) else str(value)
        positions[at] = position = known.setdefault((type(value), text), len(met))
        if position == len(met):
            met.append(value)
    return met, positions


def _close_integers(column: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[Any]]:
    """The same, counting instead of sorting, as keys are mostly small numbers."""
    lowest = column.min()
    above = column.astype(np.int64) - int(lowest) if column.dtype != np.uint64 else (column - lowest).astype(np.int64)
    there = np.bincount(above) > 0
    values = [int(lowest) + above for above in np.flatnonzero(there).tolist()]
    return values, (np.cumsum(there) - 1).take(above)


def numbers(column: Any) -> tuple[npt.NDArray[np.float64], Mask | None, str | None]:
    """A column as numbers, nan for anything else; the rows without a value; and the first number with a comma."""
    if isinstance(column, list) and {*map(type, column)} <= {float, int}:
        with suppress(OverflowError):
            column = np.array(column, np.float64)
    elif str(getattr(column, "type", "")) in ("float", "double"):
        column = arrow_numbers(column, np.nan)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        found = column.astype(np.float64, copy=False)
        nans = np.isnan(found)
        return found, nans if nans.any() else None, None
    values, positions, gone = distinct_values(column, is_missing)
    parsed = np.full(len(values) + 1, np.nan)
    with_comma: str | None = None
    for at, value in enumerate(values):
        number = as_number(value)
        if number is None and isinstance(value, str) and COMMA.fullmatch(value.strip()):
            number, with_comma = float(value.replace(",", ".")), with_comma or value.strip()
        parsed[at] = np.nan if number is None else number
    return parsed[positions], gone, with_comma


def as_number(value: Any) -> float | None:
    """A value as the number it is or spells; None if it is none."""
    if isinstance(value, str) and "_" in value:  # which Python reads as a number with groups of digits
        return None
    try:
        return float(value) if isinstance(value, str | int | float | Decimal) else None
    except (ValueError, OverflowError):
        return None


def json_number(text: str) -> float:
    """A JSON number with a fraction or an exponent, as msgspec takes 10 us for 1e308, Python 0.4."""
    value = float(text)
    if value - value != 0.0:
        raise ValueError("a number out of range")
    return value
