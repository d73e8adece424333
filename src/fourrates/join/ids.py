"""Ids as keyed fingerprints of 96 bits, so that long ids take no more memory.

Ids are equal as in Python: 2, 2.0 and numpy.int64(2) are one id, "2" is another, and so is b"2". An id is a number,
text, bytes, a UUID, or a tuple of such. A missing value (None, nan, a null) is no id.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from fourrates.events.columns import arrow_numbers
from fourrates.kernel.fingerprint import FINGERPRINT, KINDS, Hasher
from fourrates.labels import plain

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Fingerprints = npt.NDArray[np.void]

WHOLE, HIGH, FRACTION, TEXT, BYTES = (KINDS[name] for name in ("whole", "high", "fraction", "text", "bytes"))
LARGE, UNIQUE, TUPLE = range(len(KINDS), len(KINDS) + 3)  # integers of more than 64 bits, UUIDs, tuples
DEEPEST = 8  # tuples within tuples


def fingerprints(hasher: Hasher, ids: Any) -> Fingerprints:
    """The fingerprints of ids; an error names the first bad one and its position.

    Parameters
    ----------
    hasher : Hasher
        Holds the key.
    ids : array, list, pandas or polars series, Arrow array; or fingerprints
        One-dimensional. Fingerprints are returned as they are.
    """
    if isinstance(ids, str | bytes) or not hasattr(ids, "__len__"):
        raise TypeError(f"ids must be an array or a list of ids, not {ids!r}")
    if isinstance(ids, list | tuple):  # an array of them might turn 1 into "1", or tuples into a dimension
        return _of_objects(hasher, list(ids))
    if hasattr(ids, "to_arrow") and not hasattr(ids, "dtypes"):  # a series of polars
        ids = ids.to_arrow()
    if hasattr(ids, "dictionary_encode"):
        return _of_arrow(hasher, ids)
    if isinstance(ids, np.ma.MaskedArray) and np.ma.getmaskarray(ids).any():
        raise _missing("masked", int(np.ma.getmaskarray(ids).argmax()))
    return _of_array(hasher, np.asarray(ids))


def _of_array(hasher: Hasher, values: Array) -> Fingerprints:
    if values.ndim != 1:
        raise ValueError(f"ids have {values.ndim} dimensions, not one")
    if values.dtype == FINGERPRINT:
        return np.ascontiguousarray(values)
    kind, size = values.dtype.kind, values.size
    found = np.empty(size, FINGERPRINT)
    if kind in "biu":
        unsigned = values.dtype.kind == "u" and values.dtype.itemsize == 8
        bits = np.ascontiguousarray(values, np.uint64 if unsigned else np.int64)
        hasher.integers(bits.view(np.int64), unsigned, found)
    elif kind in "fUSOT":
        return _of_objects(hasher, values.tolist())
    else:
        raise TypeError(f"ids of type {values.dtype} are not numbers, strings or objects")
    return found


def _of_arrow(hasher: Hasher, ids: Any) -> Fingerprints:
    if ids.null_count:
        raise _missing(None, ids.is_null().to_pylist().index(True))
    if hasattr(ids, "chunks"):
        parts = [_of_arrow(hasher, chunk) for chunk in ids.chunks]
        return np.concatenate(parts) if parts else np.empty(0, FINGERPRINT)
    name = str(ids.type)
    if hasattr(ids, "dictionary"):
        return fingerprints(hasher, ids.dictionary).take(arrow_numbers(ids.indices, 0))
    if name.endswith("_view"):
        ids = ids.cast("large_" + name.removesuffix("_view"))
        name = str(ids.type)
    if name in ("string", "large_string", "binary", "large_binary"):
        found = np.empty(len(ids), FINGERPRINT)
        if len(ids):
            _, offsets, data = ids.buffers()
            width = np.int64 if name.startswith("large") else np.int32
            edges = np.frombuffer(offsets, width)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
            text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
            if edges[0] < 0 or edges[-1] > text.size or (edges[1:] < edges[:-1]).any():
                raise ValueError("ids: the offsets of this Arrow array do not fit its data")
            hasher.spans(TEXT if "string" in name else BYTES, edges, text, found)
        return found
    if name[:3] in ("int", "uin"):
        return _of_array(hasher, arrow_numbers(ids, 0))
    return _of_objects(hasher, ids.to_pylist())


def _of_objects(hasher: Hasher, values: list[Any]) -> Fingerprints:
    """Fingerprint ids one by one, in compiled code for text, bytes and integers; the list must be private."""
    found = np.empty(len(values), FINGERPRINT)
    hasher.objects(values, bytes_of, found)
    return found


def bytes_of(value: Any, position: int, depth: int = 0) -> tuple[int, bytes]:
    """Kind and bytes of one id, the same for equal ones."""
    value = plain(value)
    if isinstance(value, int):
        if -(2**63) <= value < 2**64:
            return (HIGH if value >= 2**63 else WHOLE), (value % 2**64).to_bytes(8, "little")
        return LARGE, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if isinstance(value, float) and value == value:
        return bytes_of(int(value), position) if value.is_integer() else (FRACTION, struct.pack("<d", value))
    if isinstance(value, str):
        return TEXT, value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return BYTES, value
    if isinstance(value, UUID):
        return UNIQUE, value.bytes
    if isinstance(value, tuple) and depth < DEEPEST:
        parts = [bytes_of(part, position, depth + 1) for part in value]
        return TUPLE, b"".join(struct.pack("<BQ", kind, len(part)) + part for kind, part in parts)
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        raise _missing(value, position)
    raise TypeError(
        f"ids: {value!r} at position {position} cannot be an id: numbers, text, bytes, UUIDs and tuples of them can"
    )


def _missing(value: Any, position: int) -> ValueError:
    return ValueError(f"ids: {value!r} at position {position} cannot be an id: it is missing")


def check_tags(tags: Any, size: int) -> npt.NDArray[np.int64]:
    """Tags as integers of 64 bits, or an error that names the problem."""
    values = np.asarray(tags)
    if values.shape != (size,):
        raise ValueError(f"tags has the shape {values.shape}, ids has {size} items")
    if size and values.dtype.kind not in "biu":
        raise TypeError(f"tags of type {values.dtype} are not integers")
    if values.dtype == np.uint64 and size and int(values.max()) >= 2**63:
        raise ValueError(f"tag {values.max()} at position {int(values.argmax())} has more than 63 bits")
    return np.ascontiguousarray(values, np.int64)
