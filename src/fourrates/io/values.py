"""What stands in a column: labels to class codes, scores, times, keys."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping
from contextlib import suppress
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.io.dates import Order, Undecided, as_iso, is_written, order_of
from fourrates.io.opening import pyarrow
from fourrates.io.table import InputError, Table
from fourrates.kernel.codes import small_codes
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint16]
    Mask = npt.NDArray[np.bool_]
    Times = npt.NDArray[np.datetime64]

COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")  # a number with a decimal comma
PLAIN_TIMES = re.compile(r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d(?::\d\d){0,2}(?:\.\d+)?)?Z?\n)*")
ARROW_FLOATS = {"halffloat": "f2", "float": "f4", "double": "f8"}  # integers have NumPy's names
EMPTY = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none", "<NA>", "#N/A")


UNKNOWN = np.uint16(65_535)
"""The code of what is no label. A detector of 65,536 classes could not be told from it; one has fewer."""


class Words:
    """From what stands in a column to class codes."""

    def __init__(self, labels: Labels) -> None:
        if len(labels.values) > UNKNOWN:
            raise ValueError(f"{len(labels.values)} labels; files can be read with at most {UNKNOWN}")
        self.labels = labels
        self.by_text = {str(label): code for code, label in enumerate(labels.values)}
        self.cache: dict[Any, int] = {}
        self.small = labels.values == tuple(range(len(labels.values)))
        self.letters = np.full(256, UNKNOWN, np.uint16)
        for letter in range(128):
            self.letters[letter] = self.code(chr(letter))

    def code(self, value: Any) -> int:
        """The code of one value, or `UNKNOWN`."""
        found = self.labels.code(value)
        if found < 0 and isinstance(value, str):
            text = value.strip()
            found = self.by_text.get(text, -1)
            if found < 0 and text.lower() in ("true", "false"):
                found = self.labels.code(text.lower() == "true")
            if found < 0 and (number := _exact(text)) is not None:
                found = self.labels.code(number)
        elif found < 0:
            found = self.by_text.get(str(value), -1)
        return found if found >= 0 else int(UNKNOWN)

    def is_missing(self, value: Any) -> bool:
        """Whether nothing stands there; a word such as NA counts unless it is a label."""
        return is_missing(value) and (value is None or value != value or value not in self.by_text)

    def encode(self, column: Any) -> tuple[Codes, Mask | None]:
        """Codes, and where the value is missing (None: nowhere)."""
        if isinstance(column, list):
            return self._encode_list(column)
        if isinstance(column, np.ndarray) and column.dtype.kind in "biu" and self.small:
            codes = np.empty(column.size, np.uint16)
            whole = column.view(np.uint8) if column.dtype.kind == "b" else column
            native = np.ascontiguousarray(whole, whole.dtype.newbyteorder("="))
            if column.size and small_codes(native, len(self.labels.values), codes) >= 0:
                codes[(native < 0) | (native >= len(self.labels.values))] = UNKNOWN
            return codes, None
        if (letters := _single_letters(column)) is not None:
            return self.letters.take(letters), None  # twice as fast as by index
        values, positions, gone = dictionary(column)
        codes = np.array([*(self.code(value) for value in values), UNKNOWN], np.uint16)
        words = [i for i, value in enumerate(values) if self.is_missing(value)]
        if words:
            gone = either(gone, np.isin(positions, words))
        return codes[positions], gone

    def _encode_list(self, column: list[Any]) -> tuple[Codes, Mask | None]:
        cache, found = self.cache, []
        try:
            found = [cache[value] for value in column]
        except (KeyError, TypeError):
            for value in column:
                if not isinstance(value, Hashable):
                    code = int(UNKNOWN)
                elif value in cache:
                    code = cache[value]
                else:
                    code = -1 if self.is_missing(value) else self.code(value)
                    # Only labels are kept: the numbers of others could be chosen so that their hashes collide.
                    if code != UNKNOWN and len(cache) < 1 << 16 and value == value:
                        cache[value] = code
                found.append(code)
        codes = np.array(found, np.int32)
        gone = codes < 0
        return codes.astype(np.uint16), gone if gone.any() else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _exact(text: str) -> float | int | None:
    """The same, a whole number where a float would not tell it from its neighbours."""
    number = _number(text)
    if number is not None and 2**53 <= abs(number) < math.inf:
        with suppress(ValueError):
            return int(text)
    return number


def is_missing(value: Any) -> bool:
    """Whether a value stands for none."""
    return value is None or (isinstance(value, float) and value != value) or (isinstance(value, str) and value in EMPTY)


def either(one: Mask | None, other: Mask | None) -> Mask | None:
    """Where one or the other mask is set; None is a mask set nowhere."""
    if one is None or other is None:
        return other if one is None else one
    return one | other


def item(column: Any, at: int) -> Any:
    """One value of a column as Python has it."""
    value = column[at]
    return value.as_py() if hasattr(value, "as_py") else value.item() if isinstance(value, np.generic) else value


def distinct(column: Any, most: int = 9, look: int = 10_000) -> list[Any]:
    """The first few different values at the start of a column."""
    size = min(len(column), look)
    values = (item(column, at) for at in range(size))
    return list(islice(dict.fromkeys(value for value in values if isinstance(value, Hashable)), most))


def classes_in(column: Any) -> Counter[Hashable]:
    """The labels that stand in a column, as what they spell, and how often; without what is missing."""
    values: list[Any]
    if isinstance(column, np.ndarray):
        unique, numbers = np.unique(column, return_counts=True)
        values = unique.tolist()
    elif (letters := _single_letters(column)) is not None:  # without pyarrow.compute, which takes long to import
        numbers = np.bincount(letters, minlength=1)
        values = [chr(letter) for letter in np.flatnonzero(numbers).tolist()]
        numbers = numbers[numbers > 0]
    else:
        values, positions, _ = dictionary(column)
        numbers = np.bincount(positions, minlength=len(values))
    met: Counter[Hashable] = Counter()
    for value, number in zip(values, numbers.tolist(), strict=False):  # behind the values is what is missing
        if number and not is_missing(value):
            met[_spelled(value)] += number
    return met


def classes_of(table: Table | None, name: str | None) -> Counter[Hashable]:
    """The same of a column by its name; none where there is no such table or column."""
    return Counter() if table is None or name is None else classes_in(table.data[name])


def _spelled(value: Any) -> Hashable:
    """Text as the whole number or truth value it spells, a float without a fraction as a whole number."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str):
        text = plain.strip()
        if text.lower() in ("true", "false"):
            return int(text.lower() == "true")
        number = _exact(text)
        plain = text if number is None or not math.isfinite(number) else number
    if isinstance(plain, bool) or (isinstance(plain, float) and plain.is_integer()):
        return int(plain)
    return plain if isinstance(plain, Hashable) else str(plain)


def _single_letters(column: Any) -> npt.NDArray[np.uint8] | None:
    """The bytes of a column of one-letter strings, none missing: the common case of 0 and 1 as text."""
    if str(getattr(column, "type", "")) != "string" or column.null_count:
        return None
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    # As many bytes as strings, and none is empty: one byte each.
    if data is None or edges[-1] - edges[0] != len(column) or not (edges[1:] > edges[:-1]).all():
        return None
    return np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]


def arrow_numbers(array: Any, missing: float) -> npt.NDArray[Any]:
    """The numbers of an Arrow array where they lie; a copy with `missing` in place of those that are, if any are.

    Arrow's own `to_numpy`, and in pyarrow 16 its `to_pandas_dtype` too, imports pandas if that is installed, which
    takes longer than a million rows.
    """
    kind = np.dtype(ARROW_FLOATS.get(str(array.type), str(array.type)))
    buffer = array.buffers()[1]
    if buffer is None:  # no rows
        return np.empty(0, kind)
    numbers = np.frombuffer(buffer, kind)[array.offset : array.offset + len(array)]
    gone = _arrow_nulls(array)
    return numbers if gone is None else np.where(gone, numbers.dtype.type(missing), numbers)


def _arrow_nulls(array: Any) -> Mask | None:
    if not array.null_count:
        return None
    return np.from_dlpack(array.is_null().cast("uint8")).view(np.bool_)


def dictionary(column: Any) -> tuple[list[Any], npt.NDArray[Any], Mask | None]:
    """Different values, the position among them of each value (one past the end where missing), and where that is."""
    if hasattr(column, "dictionary_encode"):
        encoded = column.dictionary_encode() if not hasattr(column, "dictionary") else column
        values = encoded.dictionary.to_pylist()
        positions = encoded.indices
        if positions.null_count:  # one past the end may be more than a small integer holds
            positions = positions.cast("int64")
        return _nan_apart(values, arrow_numbers(positions, len(values)), _arrow_nulls(positions))
    if isinstance(column, list):
        known: dict[str, int] = {}  # by text, whose hash is seeded
        met: list[Any] = []
        gone = np.array([is_missing(value) for value in column], np.bool_)
        positions = np.empty(len(column), np.int64)
        for at, value in enumerate(column):
            text = value if isinstance(value, str) else str(value)
            positions[at] = position = known.setdefault(text, len(met))
            if position == len(met):
                met.append(value)
        return met, positions, gone if gone.any() else None
    if column.dtype.kind in "iu" and column.size and int(column.max()) - int(column.min()) < column.size:
        return _close_integers(column)
    unique, positions = np.unique(column, return_inverse=True)
    return _nan_apart(unique.tolist(), positions, None)


def _close_integers(column: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[Any], None]:
    """The same as for others, by counting instead of sorting: keys are mostly small numbers."""
    lowest = column.min()
    above = column.astype(np.int64) - int(lowest) if column.dtype != np.uint64 else (column - lowest).astype(np.int64)
    there = np.bincount(above) > 0
    values = [int(lowest) + above for above in np.flatnonzero(there).tolist()]
    return values, (np.cumsum(there) - 1).take(above), None


def _nan_apart(values: list[Any], positions: Any, gone: Mask | None) -> tuple[list[Any], Any, Mask | None]:
    for i, value in enumerate(values):
        if isinstance(value, float) and value != value:
            gone = either(gone, positions == i)
    return values, positions, gone


def numbers(table: Table, name: str) -> tuple[npt.NDArray[np.float64], Mask | None, str | None]:
    """A column of scores, where they are missing, and the first that is written with a decimal comma."""
    column = table.data[name]
    with_comma: str | None = None
    if hasattr(column, "cast"):
        pa = pyarrow("pyarrow")
        try:
            column = arrow_numbers(column.cast(pa.float64()), np.nan)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            column = column.to_pylist()
    if isinstance(column, list):
        numbers = np.empty(len(column))
        for at, value in enumerate(column):
            number = float("nan") if is_missing(value) else _number(value) if isinstance(value, str) else value
            if number is None and COMMA.fullmatch(value):
                number, with_comma = float(value.replace(",", ".")), with_comma or value.strip()
            if not isinstance(number, int | float):
                raise InputError(f"{table.place(at)}: {value!r} in column {name!r} is not a score")
            numbers[at] = number
    elif column.dtype.kind in "biuf":
        numbers = column.astype(np.float64, copy=False)
    else:
        raise InputError(f"{table.place(0)}: {item(column, 0)!r} in column {name!r} is not a score")
    gone = np.isnan(numbers)
    return numbers, gone if gone.any() else None, with_comma


def dates_of(table: Table, name: str) -> Order | None:
    """How dates with dots or slashes stand in a column, the day or the month first; None if there are none."""
    column = table.data[name]
    if not _may_hold_text(column):
        return None  # and no value is asked for: Arrow would import pandas to give a time
    first = next((value for value in (item(column, at) for at in range(table.size)) if not is_missing(value)), None)
    if not is_written(first):
        return None
    listed = column if isinstance(column, list) else column.tolist()
    try:
        return order_of(value for value in listed if is_written(value))
    except Undecided as error:
        raise InputError(
            f"{table.source}, column {name!r}: {error}; write dates as 2026-09-01, or with dots as 01.09.2026"
        ) from None


def _may_hold_text(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "OTU"
    return isinstance(column, list) or "string" in str(column.type)


def times_of(table: Table, name: str, dates: Order | None = None) -> tuple[Times, bool]:
    """A column of times in microseconds, and whether they carry a zone (and are in UTC then)."""
    column = table.data[name]
    if hasattr(column, "cast"):
        pa = pyarrow("pyarrow")
        kind = str(column.type)
        if kind.startswith(("timestamp", "date")):
            return _arrow_moments(column).astype("M8[us]", copy=False), getattr(column.type, "tz", None) is not None
        if pa.types.is_string(column.type):
            try:  # ISO 8601 without a zone, all at once
                return _arrow_moments(column.cast(pa.timestamp("us"))), False
            except pa.ArrowInvalid:
                column = column.to_pylist()
        elif not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
            column = column.to_pylist()
        else:
            column = arrow_numbers(column.cast(pa.float64(), safe=False) if column.null_count else column, np.nan)
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return column.astype("M8[us]"), False
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return _epoch(column), True
    listed: list[Any] = column if isinstance(column, list) else column.tolist()
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in listed if value is not None):
        return _epoch(np.array([np.nan if value is None else value for value in listed], np.float64)), True
    written = listed
    if dates is not None:
        listed = [as_iso(value, dates) for value in written]
    if (plain := _plain_times(listed)) is not None:
        return plain
    micros = np.empty(len(listed), "M8[us]")
    utc = False
    for at, value in enumerate(listed):
        if is_missing(value):
            micros[at] = np.datetime64("NaT", "us")
            continue
        moment = _moment(value)
        if moment is None:
            raise InputError(
                f"{table.place(at)}: {written[at]!r} in column {name!r} is not a time (ISO 8601, 01.09.2026 or epoch)"
            )
        micros[at], zoned = moment
        utc |= zoned
    return micros, utc


def _arrow_moments(column: Any) -> Times:
    """An Arrow column of dates or times in its own unit, without pyarrow.compute, which takes long to import."""
    pa = pyarrow("pyarrow")
    numbers = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    unit: Any = getattr(column.type, "unit", "D" if numbers == pa.int32() else "ms")
    since_1970 = arrow_numbers(column.view(numbers), 0).astype(np.int64, copy=False).view(f"M8[{unit}]")
    gone = _arrow_nulls(column)
    return since_1970 if gone is None else np.where(gone, np.datetime64("NaT", unit), since_1970)


def _plain_times(values: list[Any]) -> tuple[Times, bool] | None:
    """Times that are all written alike, without a zone or all with a Z: NumPy reads those at once."""
    if not all(isinstance(value, str) and len(value) >= 10 and value[4] == "-" == value[7] for value in values):
        return None
    utc = values[0].endswith("Z")
    if utc != all(value.endswith("Z") for value in values):
        return None
    if not PLAIN_TIMES.fullmatch("\n".join([*values, ""])):  # zones NumPy would read with a warning
        return None
    text = np.array([value.removesuffix("Z") for value in values])
    if any(np.char.find(text, sign, 10).max() >= 0 for sign in ("Z", "+", "-")):
        return None
    try:
        return text.astype("M8[us]"), utc
    except ValueError:
        return None


def _moment(value: Any) -> tuple[np.datetime64, bool] | None:
    from datetime import date, datetime

    if isinstance(value, str):
        number = _number(value)
        if number is not None:
            return _epoch(np.array([number]))[0], True
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return np.datetime64(value.astimezone(UTC).replace(tzinfo=None), "us"), True
        return np.datetime64(value, "us"), False
    return (np.datetime64(value, "us"), False) if isinstance(value, date) else None


def _epoch(values: npt.NDArray[Any]) -> Times:
    """Numbers as times: seconds, milli-, micro- or nanoseconds since 1970, told apart by their size."""
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    size = float(np.abs(known).max()) if known.size else 0.0
    per_micro = next((unit for limit, unit in ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0)) if size < limit), 1e-3)
    if values.dtype.kind == "f":
        scaled = values.astype(np.float64) * per_micro
        held = np.abs(scaled) < 2.0**63  # what is missing, infinite or beyond all time is no moment
        return np.where(held, np.where(held, scaled, 0).astype(np.int64).view("M8[us]"), np.datetime64("NaT", "us"))
    scaled = values.astype(np.int64)
    return (scaled * int(per_micro) if per_micro >= 1 else scaled // 1000).view("M8[us]")


def look_like_times(data: Mapping[str, Any]) -> list[str]:
    """The columns whose first value is a date or a time."""
    return [
        name
        for name, column in data.items()
        if (isinstance(column, np.ndarray) and column.dtype.kind == "M")
        or (len(column) and looks_like_time(item(column, 0)))
    ]


def looks_like_time(value: Any) -> bool:
    """Whether a value is a date or a time as such; numbers may be anything and are not guessed at."""
    if isinstance(value, str):
        iso = value if "/" in value else as_iso(value, "day")
        return re.match(r"\d{4}-\d\d-\d\d", iso) is not None and _moment(iso) is not None
    return hasattr(value, "isoformat")
