"""The content of `--state`, with the detectors and how far the data was read, and a watch resumed from it.

Both are in one file, written whole or not at all. So no event is lost or counted twice, whenever the process ends.
Everything in the file is checked on loading, against the types below.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import msgspec

from fourrates import files
from fourrates.budget.words import DEFAULT_WORDS, is_duration, rate_between, run_length
from fourrates.cli import options as opt
from fourrates.cli.errors import checked
from fourrates.detectors import Detector
from fourrates.io import Columns, InputError
from fourrates.io.follow import Position
from fourrates.io.history import FileRecords
from fourrates.io.tail import Format
from fourrates.state import pack, read_state, unpack
from fourrates.watch import Watch

ENOUGH = 1_000  # events that show the volume
ALIKE = 1.25  # a budget in time is changed if the volume differs by more than this factor
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    COMMAND: ClassVar[str]

    watch: Annotated[bytes, msgspec.Meta(min_length=1)]  # as `Watch.to_bytes` has it; empty only until it is saved
    asked: dict[str, str | None]  # the options that choose the detector, as given

    def save(self, path: Path) -> None:
        files.write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        fields = msgspec.structs.asdict(self)
        sections = {name: value for name, value in fields.items() if isinstance(value, bytes)}
        about = {name: value for name, value in fields.items() if name not in sections}
        return pack(self.COMMAND, msgspec.to_builtins(about), **sections)

    @classmethod
    def load(cls, path: Path) -> Self | None:
        if path.is_fifo():  # saving to it would wait for a reader
            raise InputError(f"{path}: a named pipe, which cannot keep a state")
        try:
            saved = read_state(path)
            return cls.from_bytes(saved) if saved else None
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_bytes(cls, saved: bytes) -> Self:
        try:
            state = unpack(saved)
            if state.kind != cls.COMMAND:
                raise InputError(f"this is the state of {state.kind}, not of {cls.COMMAND}")
            return msgspec.convert({**state.about, **{name: bytes(part) for name, part in state.sections.items()}}, cls)
        except InputError:
            raise
        except (ValueError, TypeError, csv.Error) as error:
            raise InputError(f"a damaged state ({error})") from None

    def merged(self, asked: Mapping[str, str | None]) -> dict[str, str | None]:
        """The options to save; those not given now stay."""
        return {**self.asked, **{name: text for name, text in asked.items() if text is not None}}


class Checkpoint(_State, frozen=True, kw_only=True):
    """All that a later `watch` needs to resume."""

    COMMAND = "fourrates watch"

    origin: str  # a random name of this watch, used in the ids of its alerts
    source: str  # the file that is followed, or "-"
    warning: Count | None = None  # the event that opened the current warning, if reported
    position: Position | None = None  # how far the file was read
    format: Format = Format()  # as inferred from the file
    rows: Count = 0
    skipped: Count = 0
    bad: Count = 0  # lines rejected
    bad_size: Count = 0  # bytes of the file of bad rows


class Progress(_State, frozen=True, kw_only=True):
    """All that a later `detect` needs to resume."""

    COMMAND = "fourrates detect"

    columns: Columns
    threshold: float | None  # lowest score of a positive prediction
    files: FileRecords  # read so far
    reported: dict[str, int]  # with late labels, by segment the time up to which findings were reported
    utc: bool = False  # whether the times read so far carry a zone
    cohorts: bytes = b""  # their predictions, as `Cohorts.to_bytes` has them


def resumed(
    saved: Checkpoint | Progress,
    data: opt.Data,
    chosen: opt.Chosen,
    path: Path | None,
    trace: Callable[[Detector], Any] | None = None,
) -> Watch:
    """The watch of a state, with the budget asked for now; any other option must be the one it was begun with."""
    try:
        watch = Watch.from_bytes(saved.watch, trace)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for name, text in chosen.asked(data).items():
        before = saved.asked.get(name) or (opt.DEFAULT if name == "detector" else None)
        if name != "arl" and text not in (None, before):
            kept = f"{path} was saved with {watch.detector!r}"
            raise InputError(f"{kept}; only --budget can be changed: leave out the other options")
    _change_budget(watch, chosen.arl, saved.asked)
    return watch


def _change_budget(watch: Watch, asked: str | None, before: Mapping[str, str | None]) -> None:
    """Change the budget. One in time follows the volume so far, as the first night may be unlike the others."""
    words, now = before.get("arl"), watch.detector.parameters.get("arl")
    if now is None or (asked is None and "arl" in opt.spec(before.get("detector") or opt.DEFAULT).parameters):
        return
    rate = None
    if watch.first_time is not None and watch.last_time is not None:
        rate = rate_between(watch.events, watch.first_time, watch.last_time)
    with checked():
        same = asked is None or (words is not None and run_length(asked, 1.0) == run_length(words, 1.0))
        asked = asked or words or DEFAULT_WORDS
        in_time = is_duration(asked)
        if same and (not in_time or rate is None or watch.events < ENOUGH):
            return
        arl = run_length(asked, rate, "--budget")
        if arl == now or (same and 1 / ALIKE < arl / now < ALIKE):
            return
        watch.set_budget(arl)
    volume = "" if rate is None or not in_time else f" at {86_400 * rate:,.0f} events a day"
    opt.say(f"budget: one false alarm in {arl:,.0f} events{volume}; it was one in {now:,.0f}")


def check_columns(saved: Columns, asked: Columns) -> None:
    for kind, now in asked.to_dict().items():
        then = getattr(saved, kind)
        if now is not None and now != then:
            raise InputError(f"the state was saved with column {then!r}, not {now!r}")


def source_of(file: str) -> str:
    """The name of a file in a checkpoint, wherever it is read from."""
    return file if file == "-" else os.path.abspath(file)
