"""The states of partitions, each a watch with its offset, as files in a folder that all members of the group share.

A member that is given a partition first claims its state. Claims are numbered in rising order, and earlier claimants
can no longer save. So a member that was cut off, and does not know yet that another one has its partition, cannot
overwrite the newer state.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fourrates import files
from fourrates.checks import check_whole
from fourrates.detectors.base import Detector, RecordDetector
from fourrates.events.clock import Clock
from fourrates.state import pack, read_state, unpack
from fourrates.watch import Watch

KIND = "KafkaPartition"


class Fenced(Exception):
    """Somebody else has claimed the state since."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to save a state, until the next claim."""

    name: str
    number: int  # claims of a state count up from 1
    content: bytes | None  # as it was saved last


class Folder:
    """States as files in a folder that all members of the group share.

    Every claim is a file that only one process can create, with its own file for the state. So a late writer cannot
    overwrite the state of a later claim; it writes to another file, which nobody reads any more.

    Parameters
    ----------
    path : path
        The folder; it is created if it is not there. On a network it must have atomic renames and exclusive creation,
        as NFS from version 3 on has.

    Examples
    --------
    >>> import tempfile
    >>> from fourrates.engines.kafka import Folder
    >>> folder = Folder(tempfile.mkdtemp())
    >>> mine = folder.claim("predictions/0")
    >>> folder.save(mine, b"state")
    >>> theirs = folder.claim("predictions/0")
    >>> theirs.content
    b'state'
    >>> folder.save(mine, b"older")
    Traceback (most recent call last):
    ...
    fourrates.engines.kafka.store.Fenced: 'predictions/0': claim 1, and claim 2 is later
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def claim(self, name: str) -> Claim:
        """Claim a state, and read the latest one that was saved."""
        while True:
            number = max((number for number, _ in self._files(name)), default=0) + 1
            try:
                os.close(os.open(self._file(name, number, "claim"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            except FileExistsError:
                continue  # another process was quicker
            with suppress(FileNotFoundError):  # removed by a later claim, so ours is not worth keeping
                return Claim(name, number, self._latest(name, number))

    def save(self, claim: Claim, content: bytes) -> None:
        """Save a state and remove those of earlier claims."""
        self._check(claim)
        files.write(self._file(claim.name, claim.number, "state"), content)
        for number, path in self._files(claim.name):
            if number < claim.number:
                with suppress(FileNotFoundError):
                    path.unlink()
        self._check(claim)

    def _check(self, claim: Claim) -> None:
        last = max((number for number, _ in self._files(claim.name)), default=0)
        if last > claim.number:
            raise Fenced(f"{claim.name!r}: claim {claim.number}, and claim {last} is later")

    def _latest(self, name: str, before: int) -> bytes | None:
        saved = [(number, path) for number, path in self._files(name) if path.suffix == ".state" and number < before]
        return read_state(max(saved)[1]) if saved else None

    def _file(self, name: str, number: int, kind: str) -> Path:
        return self.path / f"{quote(name, safe='')}.{number:012d}.{kind}"

    def _files(self, name: str) -> Iterator[tuple[int, Path]]:
        form = re.compile(re.escape(quote(name, safe="")) + r"\.(\d{12,})\.(?:claim|state)")
        for file in os.listdir(self.path):
            if found := form.fullmatch(file):
                yield int(found[1]), self.path / file


@dataclass(slots=True)
class Partition:
    watch: Watch
    next: int | None = None  # the offset to resume from; the watch has exactly the messages before it
    clock: Clock = field(default_factory=Clock)  # how the times of the partition are written

    def to_bytes(self) -> bytes:
        about = {"next": self.next, "unit": self.clock.unit, "dates": self.clock.dates}
        return pack(KIND, about, watch=self.watch.pieces())

    @classmethod
    def from_bytes(cls, saved: bytes) -> Partition:
        state = unpack(saved, KIND)
        try:
            position = None if state.about["next"] is None else check_whole(state.about["next"], "next", 0)
            clock = Clock(state.about["unit"], state.about["dates"])
            watch = Watch.from_bytes(bytes(state.sections["watch"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the saved state of a partition does not fit itself ({error!r})") from None
        return cls(watch, position, clock)

    def check_detector(self, asked: RecordDetector) -> None:
        """Raise a ValueError if the watch has other settings than these."""
        saved = self.watch.detector
        if type(asked) is not type(saved) or _settings(asked) != _settings(saved):
            raise ValueError(f"it resumes with {saved!r}, not with {asked!r}")


def _settings(detector: Detector) -> dict[str, Any]:
    """Parameters with the labels in code order, which shows the positive one."""
    return {**detector.parameters, "labels": list(detector.labels.values), "positive": None}
