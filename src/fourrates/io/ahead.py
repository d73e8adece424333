"""The next batch is read while the present one is worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from fourrates.io.events import Batch

WAITING = 2  # batches


def ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Read batches in a thread of its own, a few ahead; an error comes where its batch would have come.

    Readers and detectors both leave the interpreter to others while they work, so on two cores the time of the shorter
    one vanishes.

    Examples
    --------
    >>> from fourrates import io
    >>> [batch.truths.tolist() for batch in io.ahead(iter(io.read({"y_true": [0, 1], "y_pred": [0, 1]})))]
    [[0, 1]]
    """
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(WAITING)
    stopped = threading.Event()

    def give(one: Batch | BaseException | None) -> bool:
        while not stopped.is_set():
            try:
                ready.put(one, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for batch in batches:
                if not give(batch):
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
