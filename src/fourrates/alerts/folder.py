"""Where a spool lies when nobody says where."""

from __future__ import annotations

import os
import sys

from fourrates.alerts.payload import stable_id
from fourrates.alerts.store import SpoolError


def default_path(*facts: object, suffix: str = ".alerts") -> str:
    """A file for these facts in FOURRATES_STATE if that is set, else in the user's folder of such files.

    The same facts give the same file, so that the next process finds what the last one left.
    """
    if named := os.environ.get("FOURRATES_STATE"):
        folder = named
    else:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
        elif sys.platform == "darwin":
            base = "~/Library/Application Support"
        else:
            base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        folder = os.path.join(os.path.expanduser(base), "fourrates")
    if folder.startswith("~"):
        raise SpoolError("there is no home to keep files in; name one")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, f"{stable_id(*facts)[:16]}{suffix}")
