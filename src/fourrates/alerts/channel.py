"""What carries an alert to somebody: the interface of all channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Failure(Exception):
    """An alert was not delivered; the message says why, in a line.

    Parameters
    ----------
    problem : str
        What went wrong.
    retry_after : float
        Seconds the other side asked to be left alone for.
    """

    def __init__(self, problem: str, retry_after: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert on its way.

    Attributes
    ----------
    id : str
        The same for every attempt and every channel: who receives it twice can tell.
    body : bytes
        The payload as JSON, the same bytes for every attempt.
    payload : mapping
        What stands in `body`.
    """

    id: str
    body: bytes
    payload: Mapping[str, Any]


class Channel(Protocol):
    """A way to somebody. `deliver` blocks for `deadline` seconds at most; it is called in a thread of the spool's."""

    name: str
    """What the spool keeps alerts of this channel under: the same after a restart, different for another address."""
    deadline: float

    def deliver(self, alert: Alert) -> None:
        """Deliver, or raise; whatever is raised counts as a failure."""

    def close(self) -> None:
        """Give up what is being delivered."""
