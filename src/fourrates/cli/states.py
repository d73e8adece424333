"""The content of `--state`: the detectors, and how far the data was read.

Both are in one file, written whole or not at all. So no event is lost or counted twice, whenever the process ends.
Everything in the file is checked on loading.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self

from fourrates import files
from fourrates.io import Columns, InputError, Position
from fourrates.state import MAX_STATE, pack, read_state, unpack

DAMAGED = "a damaged state"


@dataclass(frozen=True, slots=True)
class _State:
    """A saved watch, as `Watch.to_bytes` has it, and the fields in `TYPES`; those in `SECTIONS` are bytes."""

    COMMAND: ClassVar[str]
    TYPES: ClassVar[dict[str, tuple[type, ...]]]
    SECTIONS: ClassVar[tuple[str, ...]] = ("watch",)

    watch: bytes

    def save(self, path: Path) -> None:
        files.write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        about = {name: getattr(self, name) for name in self.TYPES}
        return pack(self.COMMAND, about, **{name: getattr(self, name) for name in self.SECTIONS})

    @classmethod
    def load(cls, path: Path, max_state: int = MAX_STATE) -> Self | None:
        if path.is_fifo():  # saving to it would wait for a reader
            raise InputError(f"{path}: a named pipe, which cannot keep a state")
        try:
            saved = read_state(path, max_state)
            return cls.from_bytes(saved) if saved else None
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_bytes(cls, saved: bytes) -> Self:
        """Load the bytes of :meth:`to_bytes`, checking every value."""
        try:
            state = unpack(saved)
        except ValueError as error:
            raise InputError(str(error)) from None
        if state.kind != cls.COMMAND:
            raise InputError(f"this is the state of {state.kind}, not of {cls.COMMAND}")
        about = state.about
        sound = about.keys() == cls.TYPES.keys() and {*cls.SECTIONS} == state.sections.keys()
        sound = sound and all(type(about[name]) in types for name, types in cls.TYPES.items())
        if not sound or not all(0 <= value < 2**63 for value in about.values() if type(value) is int):
            raise InputError(DAMAGED)
        return cls(**{name: bytes(part) for name, part in state.sections.items()}, **about)


@dataclass(frozen=True, slots=True)
class Checkpoint(_State):
    """All that a later `watch` needs to resume."""

    COMMAND = "fourrates watch"
    TYPES: ClassVar[dict[str, tuple[type, ...]]] = {
        "origin": (str,),
        "source": (str,),
        "warning": (int, NoneType),
        "position": (dict, NoneType),
        "budget": (str, NoneType),
        "format": (dict,),
        **dict.fromkeys(("rows", "skipped", "bad", "bad_size"), (int,)),
    }

    origin: str  # a random name of this watch, used in the ids of its alerts
    source: str  # the file that is followed, or "-"
    warning: int | None  # the event that opened the current warning, if reported
    position: dict[str, Any] | None  # how far the file was read, as `Position.to_dict` has it
    budget: str | None  # as asked for
    format: dict[str, Any]  # format inferred from the file, as `Tail.to_dict` has it
    rows: int
    skipped: int
    bad: int  # lines rejected
    bad_size: int  # bytes of the file of bad rows

    @property
    def resumes_at(self) -> Position | None:
        return None if self.position is None else Position.from_dict(self.position)


@dataclass(frozen=True, slots=True)
class Progress(_State):
    """All that a later `detect` needs to resume."""

    COMMAND = "fourrates detect"
    SECTIONS = ("watch", "cohorts")
    TYPES: ClassVar[dict[str, tuple[type, ...]]] = {
        "columns": (dict,),
        "threshold": (int, float, NoneType),
        "asked": (dict,),
        "files": (list,),
        "reported": (dict,),
    }

    columns: dict[str, Any]
    threshold: float | None  # lowest score of a positive prediction
    asked: dict[str, str | None]  # the options that choose the detector, as given
    files: list[dict[str, Any]]  # files read, as `History.to_list` has them
    reported: dict[str, int]  # with late labels, by segment the time up to which findings were reported
    cohorts: bytes = b""  # their predictions, as `Cohorts.to_bytes` has them

    def __post_init__(self) -> None:
        sound = all(type(time) is int for time in self.reported.values())
        if not sound or not all(text is None or isinstance(text, str) for text in self.asked.values()):
            raise InputError(DAMAGED)

    def chosen(self, asked: Columns) -> Columns:
        """The columns to read: as before, and equal to those asked for now."""
        try:
            saved = Columns(**self.columns)
            if not all(isinstance(name, str) for name in saved.used()):
                raise TypeError(f"{saved!r} has names that are none")
        except (TypeError, ValueError):
            raise InputError(DAMAGED) from None
        check_columns(saved, asked)
        return saved


def check_columns(saved: Columns, asked: Columns) -> None:
    for kind, now in asked.to_dict().items():
        then = getattr(saved, kind)
        if now is not None and now != then:
            raise InputError(f"the state was saved with column {then!r} where {now!r} is asked for now")


def source_of(file: str) -> str:
    """The name of a file in a checkpoint, wherever it is read from."""
    return file if file == "-" else os.path.abspath(file)
