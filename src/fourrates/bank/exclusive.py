"""One user at a time: whoever comes while another is at it is refused, and nothing is spoiled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Self_ = TypeVar("Self_", bound="_Used")


class ExclusiveUse:
    """Held by whoever uses a thing; for all others, another thread or the same one again, it is an error.

    The same thread comes again where keys, or a function that was given, use the bank that is asking them.

    Parameters
    ----------
    what : str
        What is used, for the error.

    Examples
    --------
    >>> from fourrates.bank.exclusive import ExclusiveUse
    >>> use = ExclusiveUse("this bank")
    >>> with use, use:
    ...     pass
    Traceback (most recent call last):
    RuntimeError: another thread is using this bank, or a key of it: give each thread its own, or take turns
    """

    __slots__ = ("_lock", "_what")

    def __init__(self, what: str) -> None:
        self._lock, self._what = threading.Lock(), what

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"another thread is using {self._what}, or a key of it: give each thread its own, or take turns"
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


class _Used(Protocol):
    _use: ExclusiveUse


def exclusively(
    method: Callable[Concatenate[Self_, Given], Answer],
) -> Callable[Concatenate[Self_, Given], Answer]:
    """Make a method hold the use of its object, `_use`, while it runs."""

    @wraps(method)
    def held(self: Self_, /, *args: Given.args, **settings: Given.kwargs) -> Answer:
        with self._use:
            return method(self, *args, **settings)

    return held
