"""A detector to be measured, and the ways in which libraries are fed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Loop = Callable[[Any, Iterable[Any]], Iterator[int]]
"""Feed a detector events and give the positions of its alarms, in a plain Python loop."""


@dataclass(frozen=True)
class Entry:
    """A detector with its default settings, and with one of them varied.

    Attributes
    ----------
    name : str
        As its library calls it.
    loop : Loop
        How it is fed.
    make : callable
        Makes one: with a value of the parameter, or without for the defaults.
    parameter : str
        What makes it more or less sensitive.
    sweep : tuple of float
        The values of it to try.
    takes : {"errors", "floats", "pairs", "arrays"}
        What an event is: 1 for a wrong prediction, as an int or a float, or truth and prediction; arrays hold all.
    streams : float
        The share of the streams on which it is judged: less than 1 for slow ones, 0 if it is timed only.
    events : int
        How many the time is taken over.
    seconds : float, optional
        For those that would take hours: stop then.
    """

    name: str
    loop: Loop
    make: Callable[..., Any]
    parameter: str = ""
    sweep: tuple[float, ...] = ()
    takes: str = "errors"
    streams: float = 1.0
    events: int = 100_000
    seconds: float | None = None
