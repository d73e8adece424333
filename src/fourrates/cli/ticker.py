"""How far long work has come: a line on stderr, rewritten in place on a terminal, one now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

AT_ONCE = 1.0  # seconds: what takes less shows nothing
TERMINAL, ELSEWHERE = 0.5, 10.0  # seconds between two lines
CLEAR = "\r\x1b[K"


class Ticker:
    """Tells how many events were read, and how fast.

    Parameters
    ----------
    wanted : bool, optional
        Whether to tell. Default: if stderr is a terminal.
    """

    def __init__(self, wanted: bool | None = None) -> None:
        self._in_place = sys.stderr.isatty()
        self._wanted = self._in_place if wanted is None else wanted
        self._began = time.monotonic()
        self._next = self._began + AT_ONCE
        self._shown = False

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown and self._in_place:
            print(end=CLEAR, file=sys.stderr, flush=True)

    def tick(self, events: int, found: str) -> None:
        """Tell, if it is time to; `found` says what was found so far."""
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next = now + (TERMINAL if self._in_place else ELSEWHERE)
        self._shown = True
        line = f"{events:,} events read, {events / (now - self._began):,.0f} a second, {found} so far"
        print(
            f"{CLEAR}{line}" if self._in_place else line,
            end="" if self._in_place else "\n",
            file=sys.stderr,
            flush=True,
        )
