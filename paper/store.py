"""Results on the disk, one line a finished run, so that work that was stopped goes on where it stood.

Each experiment has a file of its own, named after it and after everything its numbers depend on: the seed, the lengths,
the settings of the detectors, the version of the code. Other settings, another file: stale results are never taken.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Result = dict[str, Any]


class Store:
    """The finished runs of one experiment.

    Parameters
    ----------
    folder : path
        Where the file is, or will be.
    name : str
        Of the experiment.
    key : mapping
        What its numbers depend on.

    Examples
    --------
    >>> import tempfile
    >>> from paper.store import Store
    >>> folder = tempfile.mkdtemp()
    >>> Store(folder, "SEA", {"seed": 0}).add(3, {"drifts": [15_200]})
    >>> Store(folder, "SEA", {"seed": 0}).results
    {3: {'drifts': [15200]}}
    >>> Store(folder, "SEA", {"seed": 1}).results
    {}
    """

    def __init__(self, folder: str | os.PathLike[str], name: str, key: Mapping[str, Any]) -> None:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()[:12]
        self.name = name
        self.path = Path(folder) / f"{name}-{digest}.jsonl"
        self.results: dict[int, Result] = {}
        self._whole = 0  # bytes up to the end of the last whole line
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        for line in self.path.read_bytes().splitlines(keepends=True):
            try:
                record = json.loads(line)
                run, result = record["run"], record["result"]
            except (ValueError, KeyError, TypeError):
                break
            if not line.endswith(b"\n"):  # the last line was cut short
                break
            self.results[run] = result
            self._whole += len(line)

    def add(self, run: int, result: Result) -> None:
        """Keep a finished run: on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"run": run, "result": result}, separators=(",", ":")).encode() + b"\n"
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            file.seek(self._whole)
            file.truncate()
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._whole += len(line)
        self.results[run] = result
