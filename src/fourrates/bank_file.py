"""The file of a bank: an .npz of NumPy, sealed with a checksum of all its bytes.

:func:`pack` makes its content; :func:`unpack` reads it, or says what is wrong with it.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
import zlib
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Columns = dict[str, npt.NDArray[Any]]

FORMAT = 1
FIRST = "fourrates_bank"  # the part a file begins with
SEAL = "fourrates bank, crc32 {:08x}"  # and what it ends with: the comment of the archive


def pack(about: dict[str, Any], names: list[Hashable], columns: Columns) -> bytes:
    """The content of a file: what JSON can say, keys, and arrays by name."""
    buffer = io.BytesIO()
    first = {FIRST: _text({"version": FORMAT, **about})}
    np.savez(buffer, **first, names=_text([_to_json(name) for name in names]), **columns)  # type: ignore[arg-type]
    with zipfile.ZipFile(buffer, "a") as file:
        file.comment = SEAL.format(0).encode()
    content = buffer.getvalue()[: -len(SEAL.format(0))]
    return content + SEAL.format(zlib.crc32(content)).encode()


def unpack(content: bytes) -> tuple[dict[str, Any], list[Hashable], Columns]:
    """What :func:`pack` was given, or a ValueError that says what is wrong."""
    if content[:4] != b"PK\x03\x04" or not content[30:].startswith(FIRST.encode()):
        raise ValueError("not a bank saved by fourrates")
    sealed = len(content) - len(SEAL.format(0))
    seal = SEAL.format(zlib.crc32(memoryview(content)[:sealed])).encode()
    if not content.endswith(seal):
        if not content[sealed:].startswith(seal[:-8]):
            raise ValueError(f"the bank is cut short, or goes on where it should end: it has {len(content):,} bytes")
        raise ValueError(f"the bank is damaged: its checksum does not fit{_damaged_part(content)}")
    with np.load(io.BytesIO(content), allow_pickle=False) as parts:
        columns = dict(parts)
    about = json.loads(columns.pop(FIRST).tobytes())
    if about["version"] != FORMAT:
        raise ValueError(f"a bank of version {about['version']}; this release reads version {FORMAT}")
    return about, [_from_json(name) for name in json.loads(columns.pop("names").tobytes())], columns


def _damaged_part(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            part = file.testzip()
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, zlib.error):
        return ""
    return f"; the damage is in {part.removesuffix('.npy')!r}" if part else ""


def _text(value: object) -> npt.NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value, separators=(",", ":")).encode(), np.uint8)


def _to_json(key: Any) -> Any:
    if isinstance(key, tuple):
        return {"tuple": [_to_json(one) for one in key]}
    if isinstance(key, bytes):
        return {"bytes": base64.b64encode(key).decode()}
    if key is None or type(key) in (str, int, float, bool):
        return key
    raise TypeError(f"save keeps keys that are numbers, strings, bytes or tuples of them, not {key!r}; pickle does")


def _from_json(saved: Any) -> Hashable:
    if not isinstance(saved, dict):
        return saved  # type: ignore[no-any-return]
    if "tuple" in saved:
        return tuple(_from_json(one) for one in saved["tuple"])
    return base64.b64decode(saved["bytes"])
