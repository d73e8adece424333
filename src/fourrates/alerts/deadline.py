"""One deadline for a call that is made of many waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from fourrates.alerts.channel import Failure

Result = TypeVar("Result")


class Deadline:
    """A moment; :meth:`left` says how long there is, and raises when there is nothing left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until then."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise Failure(f"took longer than {self.seconds:g} s")
        return left


class Impatient:
    """Calls that cannot be interrupted (a name looked up, another library's code) in a thread that is not waited for.

    While one that took too long is still running no other is begun, so threads do not pile up.
    """

    def __init__(self) -> None:
        self._running: threading.Thread | None = None

    def call(self, function: Callable[[], Result], deadline: Deadline, what: str) -> Result:
        """What the function returns or raises; a `Failure` at the deadline."""
        if self._running is not None and self._running.is_alive():
            raise Failure(f"{what} is still busy with an earlier attempt")
        results: list[Result] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(function())
            except BaseException as error:
                errors.append(error)

        self._running = threading.Thread(target=work, daemon=True, name=f"fourrates {what}")
        self._running.start()
        self._running.join(deadline.left())
        if errors:
            raise errors[0]
        if not results:
            raise Failure(f"{what} took longer than {deadline.seconds:g} s")
        return results[0]
