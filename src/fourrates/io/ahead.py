"""The next ones are made while the present one is worked on.

The threads that do so, our own and one of pyarrow, ask for the interpreter now and then. One that does so while the
interpreter is ending aborts the process, so all are ended before: when whatever they read for is, or at exit.
"""

from __future__ import annotations

import atexit
import io
import queue
import threading
import weakref
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from fourrates.io.opening import pyarrow, some

One = TypeVar("One")
WAITING = 2  # of those made and not yet taken
PATIENCE = 1.0  # seconds for a thread to end; it takes longer only where a pipe is open and silent

_reading: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()
_lent: weakref.WeakSet[Ahead] = weakref.WeakSet()


def closed_at_exit(reading: Generator[One, None, None]) -> Generator[One, None, None]:
    """A generator that has a thread work for it, to be closed before the interpreter ends."""
    _reading.add(reading)
    return reading


@atexit.register
def _close_all() -> None:
    for stream in list(_lent):
        stream.over = True
    for reading in list(_reading):
        with suppress(Exception):  # one that runs in a thread is closed by whoever has it run there
            reading.close()


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
    return closed_at_exit(_ahead(those))


def _ahead(those: Iterator[One]) -> Generator[One, None, None]:
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
        finally:
            if isinstance(those, Generator):
                those.close()

    # A daemon: a pipe that never gives another byte must not keep the process from ending.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (one := ready.get()) is not None:
            if isinstance(one, BaseException):
                raise one
            yield one
    finally:
        stopped.set()
        if thread is not threading.current_thread():  # where that collects the garbage, it may come upon this
            thread.join(PATIENCE)


class Ahead(io.RawIOBase):
    """A stream that pyarrow reads ahead, in a thread of its own, until it is over."""

    def __init__(self, stream: Any, loan: Loan) -> None:
        self._some, self._loan, self.over = some(stream), loan, False
        _lent.add(self)

    def readable(self) -> bool:  # noqa: D102
        return True

    def read(self, size: int = -1, /) -> memoryview:  # noqa: D102
        found = b""
        while len(found) < size and not self.over and (more := self._some(size - len(found))):
            found = found + more if found else more
        return self._loan.note(memoryview(found))


class Loan:
    """A stream lent to a reader of pyarrow that reads ahead; :meth:`end` takes it back.

    The threads that do so outlive the reader, and one that lets go of a Python object asks for the interpreter. In the
    end they are given nothing more to read, and waited for until they have let go of the stream and all that came from
    it.
    """

    def __init__(self, stream: Any) -> None:
        self._held: dict[int, weakref.ref[Any]] = {}
        self._returned = threading.Condition()
        ahead = self.note(Ahead(stream, self))
        self.file = pyarrow("pyarrow").PythonFile(ahead, "r")
        self._ahead = weakref.ref(ahead)

    def note(self, thing: One) -> One:
        """Lend one more thing; it is back when nobody refers to it any longer."""
        place = id(thing)
        self._held[place] = weakref.ref(thing, lambda _: self._take_back(place))
        return thing

    def _take_back(self, place: int) -> None:
        with self._returned:
            self._held.pop(place, None)
            self._returned.notify()

    def end(self) -> None:
        """Call it when nothing else refers to the reader."""
        self.file = None
        if (ahead := self._ahead()) is not None:
            ahead.over = True
        del ahead
        with self._returned:
            self._returned.wait_for(lambda: not self._held, PATIENCE)
