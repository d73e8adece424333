"""Progress of long work: a line on stderr, rewritten in place, if that is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

AT_ONCE = 1.0  # seconds: shorter work shows nothing
PAUSE = 0.5  # seconds between two lines
CLEAR = "\r\x1b[K"


class Ticker:
    """Shows how many events were read, and how fast."""

    def __init__(self) -> None:
        self._wanted, self._shown = sys.stderr.isatty(), False
        self._began = time.monotonic()
        self._next = self._began + AT_ONCE

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown:
            print(end=CLEAR, file=sys.stderr, flush=True)

    def tick(self, events: int, found: str) -> None:
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next, self._shown = now + PAUSE, True
        speed = events / (now - self._began)
        print(end=f"{CLEAR}{events:,} events read, {speed:,.0f} a second, {found} so far", file=sys.stderr, flush=True)
