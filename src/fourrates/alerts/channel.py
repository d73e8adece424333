"""The interface of all channels, which deliver alerts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class Failure(Exception):
    """An alert was not delivered, for the reason in the message.

    Parameters
    ----------
    problem : str
        The cause.
    retry_after : float
        Seconds the other side asked to be left alone for.
    """

    def __init__(self, problem: str, retry_after: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class Channel(Protocol):
    """A way to reach somebody. `deliver` blocks for `deadline` seconds at most; it runs in a thread of the spool."""

    name: str
    """The name of this channel in the spool, the same after a restart, different for another address."""
    deadline: float

    def deliver(self, alert: Mapping[str, Any]) -> None:
        """Deliver an alert, or raise; whatever is raised counts as a failure.

        Its ``id`` is the same for every attempt and channel, so that a receiver can recognise repeats.
        """

    def close(self) -> None:
        """Give up the current delivery."""


class Impatient:
    """Calls that cannot be interrupted (a name looked up, another library's code) in a thread that is not waited for.

    While one that took too long is still running no other is begun, so threads do not pile up.
    """

    def __init__(self) -> None:
        self._last: Future[Any] | None = None

    def call(self, function: Callable[[], Result], seconds: float, what: str) -> Result:
        """The result or exception of the function; a `Failure` when the time is up."""
        if self._last is not None and wait([self._last], 0.1).not_done:  # it may have been broken off just now
            raise Failure(f"{what} is still busy with an earlier attempt")
        outcome: Future[Result] = Future()
        self._last = outcome

        def work() -> None:
            try:
                outcome.set_result(function())
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=work, daemon=True, name=f"fourrates {what}").start()
        try:
            return outcome.result(seconds)
        except TimeoutError:  # of its own, or of ours
            raise Failure(f"{what} took longer than {seconds:g} s") from None
