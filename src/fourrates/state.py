"""The one format of saved states, versioned, checksummed, and checked on loading.

A saved state is a header, a JSON text, some sections of bytes and a checksum. It is not compressed, so loading needs
only a small multiple of its length in memory. :func:`pack` writes a state; :func:`unpack` reads it, or raises a
ValueError that names the problem. Whoever packed the sections checks their content.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

Pieces = list[bytes | memoryview]

MAGIC = b"4rates"
VERSION = 7
HEADER = struct.Struct("<6sBxI")  # magic, version, length of the JSON text
MAX_STATE = 1 << 30  # bytes; longer states must be allowed explicitly
DEEPEST = 32  # brackets within brackets in the JSON text
STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"')  # brackets in strings are text


class Saved(NamedTuple):
    """The content of a state, with its kind, its JSON part, and bytes by name."""

    kind: str
    about: dict[str, Any]
    sections: dict[str, memoryview]


def pack(kind: str, about: dict[str, Any], **sections: bytes | memoryview | Pieces) -> bytes:
    """Assemble a state."""
    return b"".join(pieces(kind, about, **sections))


def pieces(kind: str, about: dict[str, Any], **sections: bytes | memoryview | Pieces) -> Pieces:
    """A state in pieces. As a section of another, it is not copied before the whole is."""
    parts = {name: part if isinstance(part, list) else [part] for name, part in sections.items()}
    sizes = [[name, sum(map(len, part))] for name, part in parts.items()]
    text = json.dumps({"kind": kind, "about": about, "sections": sizes}, separators=(",", ":")).encode()
    whole = [HEADER.pack(MAGIC, VERSION, len(text)), text, *chain.from_iterable(parts.values())]
    checksum = reduce(lambda so_far, part: zlib.crc32(part, so_far), whole, 0)
    return [*whole, struct.pack("<I", checksum)]


def read_state(path: str | os.PathLike[str], max_state: int = MAX_STATE) -> bytes:
    """Read a state file; empty for a device, a ValueError if it is too long to be a state."""
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
    """Raise a ValueError if a state is too long."""
    if size > max_state:
        raise ValueError(f"a state of more than {max_state:,} bytes (max_state)")


def unpack(saved: bytes | memoryview, kind: str | None = None) -> Saved:
    """Check and parse a state, of this kind if one is given; only the current version is supported."""
    view = memoryview(bytes(saved))  # a private copy, for the bytes checked here must be the ones used later
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
        case {"kind": str(own), "about": dict(about), "sections": list(listed)}:
            pass
        case _:
            raise ValueError("the saved state has no kind")
    sections: dict[str, memoryview] = {}
    for entry in listed:
        match entry:
            case [str(name), int(length)] if 0 <= length <= len(view) - end and name not in sections:
                sections[name] = view[end : end + length]
                end += length
            case _:
                raise ValueError(f"the saved state has a section {entry!r} that does not fit")
    if end != len(view):
        raise ValueError(f"the saved state has {len(view) - end} bytes after its end")
    if kind not in (None, own):
        raise ValueError(f"this is the state of {own}, not of {kind}")
    return Saved(own, about, sections)


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
        raise ValueError(f"the saved state has a head that cannot be read ({error})") from None
