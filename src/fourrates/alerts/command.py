"""Alerts given to a command: JSON on its standard input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fourrates.alerts.channel import Failure
from fourrates.alerts.payload import encode

LONGEST = 10_000  # characters of a fact in the environment, for which systems have bounds
MERCY = 2.0  # seconds between asking a command to end and ending it


class Command:
    """Runs a command in a shell for each alert; exit status 0 means delivered.

    The alert is on its standard input, as a line of JSON; id, stream, event and rates are in its environment as
    ``FOURRATES_ID``, ``FOURRATES_STREAM``, ``FOURRATES_AT``, ``FOURRATES_SINCE`` and ``FOURRATES_RATES``. Nothing of
    the alert becomes part of the command line. The command's output goes to stderr.

    Parameters
    ----------
    command : str
        Given to the shell.
    deadline : float
        Seconds it may take before it is ended, with everything it has started.
    """

    def __init__(self, command: str, *, deadline: float = 60.0) -> None:
        if not command.strip() or "\0" in command:
            raise ValueError(f"{command!r} is not a command")
        self.command, self.deadline = command, deadline
        self.name = f"exec {command}"
        self._process: subprocess.Popen[bytes] | None = None

    def deliver(self, alert: Mapping[str, Any]) -> None:
        """Run it to its end."""
        process = subprocess.Popen(
            self.command,
            shell=True,
            stdin=subprocess.PIPE,
            stdout=sys.__stderr__.fileno() if sys.__stderr__ is not None else subprocess.DEVNULL,
            env=os.environ | _facts(alert),
            start_new_session=True,  # its own process group, which can be ended as a whole
        )
        self._process = process
        try:
            process.communicate(encode(alert) + b"\n", timeout=self.deadline)
        except subprocess.TimeoutExpired:
            _end(process)
            raise Failure(f"still running after {self.deadline:g} s, ended") from None
        except BaseException:
            _end(process)
            raise
        finally:
            self._process = None
        if process.returncode != 0:
            raise Failure(f"exit status {process.returncode}")

    def close(self) -> None:
        """End the command that is running."""
        if (process := self._process) is not None:
            _signal(process, signal.SIGTERM)


def _facts(alert: Mapping[str, Any]) -> dict[str, str]:
    facts = {name.upper(): alert.get(name, "") for name in ("id", "kind", "stream", "at", "since")}
    facts["RATES"] = ",".join(f"{change['rate']}:{change['direction']}" for change in alert.get("changes", ()))
    return {f"FOURRATES_{name}": _fact(str(value)) for name, value in facts.items()}


def _fact(text: str) -> str:
    """A text as an environment can hold it; the input of the command has it whole."""
    return text[:LONGEST].replace("\0", "").encode("utf-8", "replace").decode()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its whole group, first by a signal it can handle, then by force."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(MERCY)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)  # its number is that of its group
        else:
            process.send_signal(number)
