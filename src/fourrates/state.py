"""The one form in which fourrates saves things: versioned, checksummed, and read with suspicion.

A saved state is a header, a JSON text, some sections of bytes and a checksum. Nothing is compressed, so that a state
never needs more memory than a small multiple of its own length. :func:`pack` writes it; :func:`unpack` reads it, or
raises a ValueError that says what is wrong. What the sections hold is checked by whoever gave them.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from typing import Any, NamedTuple

MAGIC = b"4rates"
VERSION = 6
HEADER = struct.Struct("<6sBxI")  # magic, version, length of the JSON text
MAX_STATE = 1 << 30  # bytes; a state that is longer is read where that is asked for
DEEPEST = 32  # brackets within brackets in the JSON text
STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"')  # brackets in there are text


class Saved(NamedTuple):
    """What a state holds: what it is the state of, what JSON can say, and bytes by name."""

    kind: str
    about: dict[str, Any]
    sections: dict[str, memoryview]


def pack(kind: str, about: dict[str, Any], **sections: bytes | memoryview) -> bytes:
    """Put a state together."""
    text = json.dumps(
        {"kind": kind, "about": about, "sections": [[name, len(part)] for name, part in sections.items()]},
        separators=(",", ":"),
    ).encode()
    parts = [HEADER.pack(MAGIC, VERSION, len(text)), text, *sections.values()]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([*parts, struct.pack("<I", checksum)])


def read_state(path: str | os.PathLike[str], max_state: int = MAX_STATE) -> bytes:
    """The content of a file that holds a state, nothing if it is a device; a ValueError if it is too long to be one."""
    content = bytearray()
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        return b""
    with open(path, "rb") as file:
        check_size(os.fstat(file.fileno()).st_size, max_state)
        while block := file.read(1 << 20):
            content += block
            check_size(len(content), max_state)
    return bytes(content)


def check_size(size: int, max_state: int) -> None:
    """Raise a ValueError if a state is longer than it may be."""
    if size > max_state:
        raise ValueError(f"a state of more than {max_state:,} bytes (max_state)")


def unpack(saved: bytes | memoryview) -> Saved:
    """Take a state apart, after its checksum; only states of the present version are read."""
    view = memoryview(bytes(saved))  # of our own: what is checked here must be what is used later
    if bytes(view[: len(MAGIC)]) != MAGIC or len(view) < HEADER.size + 4:
        raise ValueError("these bytes are not a state saved by fourrates")
    version = view[len(MAGIC)]
    if version != VERSION:
        raise ValueError(f"state of version {version}; this release reads version {VERSION}")
    if struct.unpack("<I", view[-4:])[0] != zlib.crc32(view[:-4]):
        raise ValueError("the saved state is damaged: its checksum does not fit")
    view = view[:-4]
    _, _, size = HEADER.unpack_from(view)
    end = HEADER.size + size
    if end > len(view):
        raise ValueError(f"the saved state of {len(view)} bytes is cut")
    text = _json(view[HEADER.size : end])
    match text:
        case {"kind": str(kind), "about": dict(about), "sections": list(listed)}:
            pass
        case _:
            raise ValueError("the saved state does not say what it is")
    sections: dict[str, memoryview] = {}
    for entry in listed:
        match entry:
            case [str(name), int(length)] if 0 <= length <= len(view) - end and name not in sections:
                sections[name] = view[end : end + length]
                end += length
            case _:
                raise ValueError(f"the saved state has a section {entry!r} that does not fit")
    if end != len(view):
        raise ValueError(f"the saved state goes on for {len(view) - end} bytes where it should end")
    return Saved(kind, about, sections)


def _json(text: memoryview) -> Any:
    raw = bytes(text)
    depth = deepest = 0
    for byte in STRING.sub(b"", raw).translate(None, bytes(set(range(256)) - set(b"[]{}"))):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise ValueError(f"the saved state has brackets {deepest} deep")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the saved state says what it is in a way that cannot be read ({error})") from None
