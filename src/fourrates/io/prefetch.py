"""Make the next items in a thread while the current one is processed.

A thread that needs the interpreter while it shuts down aborts the process. So each thread is stopped first: when its
reader is closed, or at exit.
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
WAITING = 2  # items made ahead
PATIENCE = 1.0  # seconds for a thread to end; only an open, silent pipe takes longer

_open: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for reading in list(_open):
        with suppress(Exception):  # one that runs in a thread is closed by whoever has it run there
            reading.close()


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Iterate in a separate thread, a few items ahead; an error is raised in place of the next item.

    Readers and detectors release the GIL while they work, so on two cores the shorter job costs no time.
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

    # A daemon, as a pipe that never gives another byte must not keep the process from ending.
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
