"""The next ones are made while the present one is worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

One = TypeVar("One")
WAITING = 2  # of those made and not yet taken


def ahead(those: Iterator[One]) -> Iterator[One]:
    """Take from an iterator in a thread of its own, a few ahead; an error comes where the next one would have come.

    Readers and detectors leave the interpreter to others while they work, so on two cores the time of the shorter one
    vanishes.

    Examples
    --------
    >>> from fourrates.io.ahead import ahead
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    ready: queue.Queue[One | BaseException | None] = queue.Queue(WAITING)
    stopped = threading.Event()

    def give(one: One | BaseException | None) -> bool:
        while not stopped.is_set():
            try:
                ready.put(one, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for one in those:
                if not give(one):
                    return
            give(None)
        except BaseException as error:
            give(error)

    # A daemon: a pipe that never gives another byte must not keep the process from ending.
    threading.Thread(target=work, daemon=True).start()
    try:
        while (one := ready.get()) is not None:
            if isinstance(one, BaseException):
                raise one
            yield one
    finally:
        stopped.set()
