"""An environment of its own for a library that is compared with, and programs run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build" / "peers"
REQUIREMENTS = {
    "river": ["river>=0.26"],
    "frouros": ["frouros>=0.9"],
    "menelaus": ["menelaus>=0.2", "numpy<2.4"],  # its ADWINAccuracy makes an int of an array
    "capymoa": ["capymoa>=0.15"],  # and Java
}
PATIENCE = 1_800  # seconds for anything that is started here


class LeftOut(Exception):
    """Why a library is not in the table."""


def called(*command: str | Path, **environ: str) -> None:
    """Run it; what it said last is the reason if it fails."""
    try:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=PATIENCE, env=os.environ | environ
        )
    except subprocess.TimeoutExpired:
        raise LeftOut(f"not ready after {PATIENCE} s") from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise LeftOut(said[-1] if said else f"status {done.returncode}")


def environment(family: str) -> Path:
    """The interpreter to use: this one for fourrates, one of its own for a peer."""
    if family not in REQUIREMENTS:
        return Path(sys.executable)
    folder, wanted = BUILD / family, "\n".join(REQUIREMENTS[family])
    python, stamp = folder / "bin" / "python", folder / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {', '.join(REQUIREMENTS[family])}", flush=True)
        called(sys.executable, "-m", "venv", folder)
        called(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS[family])
        stamp.write_text(wanted)
    return python
