"""What `detect --state` keeps: the detectors, what they have read, and what it was asked for.

All is in one file that is written whole or not at all, so it always fits: no row is lost or counted twice, whenever
the process ends.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fourrates import files
from fourrates.cli.states import load_state
from fourrates.io import Columns, InputError
from fourrates.state import MAX_STATE, pack, unpack

KIND = "Detection"


@dataclass(frozen=True, slots=True)
class Progress:
    """All that a later `detect` needs to resume.

    Attributes
    ----------
    watch : bytes
        The watch, as `Watch.to_bytes` has it.
    columns : Columns
        Which column is what.
    threshold : float or None
        The score from which on a prediction is positive.
    asked : dict
        The options that say which detector, as they were written.
    files : list
        What was read, as `History.to_list` has it.
    """

    watch: bytes
    columns: Columns
    threshold: float | None
    asked: dict[str, str | None]
    files: list[dict[str, Any]]

    def save(self, path: Path) -> None:
        """Write it: whoever reads the file finds the old or the new one."""
        about = {
            "columns": asdict(self.columns),
            "threshold": self.threshold,
            "asked": self.asked,
            "files": self.files,
        }
        files.write(path, pack(KIND, about, watch=self.watch))

    @classmethod
    def load(cls, path: Path, max_state: int = MAX_STATE) -> Progress | None:
        """Read it; None if there is no such file, or an empty one."""
        return load_state(path, max_state, cls.from_bytes)

    @classmethod
    def from_bytes(cls, saved: bytes) -> Progress:
        """Bring back what :meth:`save` wrote; every value is looked at before it is used."""
        found = unpack(saved)
        if found.kind != KIND:
            raise InputError(f"this is the state of {found.kind}, not of fourrates detect")
        try:
            columns = Columns(**found.about["columns"])
            threshold, asked, listed = (found.about[name] for name in ("threshold", "asked", "files"))
            sound = all(isinstance(name, str) for name in columns.used())
            sound = sound and (threshold is None or type(threshold) in (int, float))
            sound = (
                sound
                and isinstance(asked, dict)
                and all(text is None or isinstance(text, str) for text in asked.values())
            )
            if not sound:
                raise InputError("a damaged state")
            return cls(bytes(found.sections["watch"]), columns, threshold, asked, listed)
        except (KeyError, TypeError, ValueError):
            raise InputError("a damaged state") from None

    def chosen(self, asked: Columns) -> Columns:
        """The columns to read: as before, and the same as those asked for now."""
        for kind, now in asdict(asked).items():
            then = getattr(self.columns, kind)
            if now is not None and now != then:
                raise InputError(f"the state was saved with column {then!r} where {now!r} is asked for now")
        return self.columns
