"""What `watch --state` keeps: the detectors, and the place in the file up to which they have seen it.

Both are in one file that is written whole or not at all, so they always fit: no event is lost or counted twice,
whenever the process ends.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fourrates import files
from fourrates.cli.states import load_state
from fourrates.io import InputError, Position
from fourrates.state import MAX_STATE

TITLE = b"fourrates watch 1"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a later `watch` needs to go on.

    Attributes
    ----------
    origin : str
        A random name of this watch, from which the ids of its alerts are made.
    source : str
        The file that is followed, or ``-``.
    watch : bytes
        The watch, as `Watch.to_bytes` has it.
    warning : int or None
        The event that opened the present warning, which has been reported.
    position : Position or None
        How far the file was read.
    budget : str or None
        The budget that was asked for.
    format : dict
        What was learned of the file, as `Tail.to_dict` has it.
    rows, skipped, bad : int
        Rows read, those skipped, and lines that were refused.
    bad_size : int
        Bytes of the file of bad rows.
    """

    origin: str
    source: str
    watch: bytes
    warning: int | None
    position: Position | None
    budget: str | None
    format: dict[str, Any]
    rows: int
    skipped: int
    bad: int
    bad_size: int

    def save(self, path: Path) -> None:
        """Write it: whoever reads the file finds the old or the new one."""
        files.write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """As it stands in the file: a line with a checksum, and JSON."""
        content = {
            "origin": self.origin,
            "source": self.source,
            "watch": base64.b64encode(self.watch).decode(),
            "warning": self.warning,
            "position": None if self.position is None else self.position.to_dict(),
            "budget": self.budget,
            "format": self.format,
            "rows": self.rows,
            "skipped": self.skipped,
            "bad": self.bad,
            "bad_size": self.bad_size,
        }
        body = json.dumps(content).encode()
        return b"%s %08x\n%s\n" % (TITLE, zlib.crc32(body), body)

    @classmethod
    def load(cls, path: Path, max_state: int = MAX_STATE) -> Checkpoint | None:
        """Read it; None if there is no such file, or an empty one."""
        return load_state(path, max_state, cls.from_bytes)

    @classmethod
    def from_bytes(cls, saved: bytes) -> Checkpoint:
        """Bring back what :meth:`to_bytes` gave; every value is looked at before it is used."""
        head, _, rest = saved.partition(b"\n")
        body = rest.removesuffix(b"\n")
        if not head.startswith(TITLE + b" "):
            raise InputError("not a state saved by fourrates watch, or one of another release")
        if head != b"%s %08x" % (TITLE, zlib.crc32(body)) or body == rest:
            raise InputError("a damaged state")
        try:
            content = json.loads(body)
            texts = {name: content[name] for name in ("origin", "source")}
            numbers = {name: content[name] for name in ("rows", "skipped", "bad", "bad_size")}
            sound = all(isinstance(text, str) for text in texts.values())
            sound = sound and type(content["warning"]) in (int, type(None))
            sound = sound and type(content["budget"]) in (str, type(None))
            sound = sound and all(type(number) is int and 0 <= number < 2**63 for number in numbers.values())
            if not sound or not isinstance(content["format"], dict):
                raise ValueError
            return cls(
                **texts,
                watch=base64.b64decode(content["watch"], validate=True),
                warning=content["warning"],
                position=None if content["position"] is None else Position.from_dict(content["position"]),
                budget=content["budget"],
                format=content["format"],
                **numbers,
            )
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError, binascii.Error):
            raise InputError("a damaged state") from None


def source_of(file: str) -> str:
    """What a checkpoint calls a file, wherever it is read from."""
    return file if file == "-" else os.path.abspath(file)
