"""Make the next items in a thread while the present one is worked on.

Such a thread asks for the interpreter now and then, and one that does so while the interpreter is ending aborts the
process. So each is ended before: when its reader is closed, or at exit.
"""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

Item = TypeVar("Item")
WAITING = 2  # items made and not yet asked for
PATIENCE = 1.0  # seconds for a thread to end; it takes longer only where a pipe is open and silent

_open: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for reading in list(_open):
        with suppress(Exception):  # one that runs in a thread is closed by whoever has it run there
            reading.close()


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Iterate in a thread of its own, a few items ahead; an error comes where the next item would have come.

    Readers and detectors leave the interpreter to others while they work, so on two cores the time of the shorter one
    vanishes.

    Examples
    --------
    >>> from fourrates.io.prefetch import prefetch
    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    reading = _prefetch(items)
    _open.add(reading)
    return reading


def _prefetch(items: Iterator[Item]) -> Generator[Item, None, None]:
    ready: queue.Queue[Item | BaseException | None] = queue.Queue(WAITING)
    stopped = threading.Event()

    def put(item: Item | BaseException | None) -> bool:
        while not stopped.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(None)
        except BaseException as error:
            put(error)
        finally:
            if isinstance(items, Generator):
                items.close()

    # A daemon: a pipe that never gives another byte must not keep the process from ending.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        if thread is not threading.current_thread():  # where that collects the garbage, it may come upon this
            thread.join(PATIENCE)
