"""States of commands, as they lie on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fourrates.io import InputError
from fourrates.state import read_state

State = TypeVar("State")


def load_state(path: Path, max_state: int, revive: Callable[[bytes], State]) -> State | None:
    """Read a state and bring it back; None if there is no such file, or an empty one."""
    if path.is_fifo():  # which would wait for a reader whenever the state is saved
        raise InputError(f"{path}: a named pipe, which cannot keep a state")
    try:
        saved = read_state(path, max_state)
        return revive(saved) if saved else None
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
