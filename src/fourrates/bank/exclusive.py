"""One user at a time: whoever comes while another is at it is refused, and nothing is spoiled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
User = TypeVar("User", bound=Any)


class ExclusiveUse:
    """Held by whoever uses a thing; for all others it is an error.

    The same thread is refused too: keys, or a function that was given, may use the bank that is asking them.

    Examples
    --------
    >>> from fourrates.bank.exclusive import ExclusiveUse
    >>> use = ExclusiveUse("this bank")
    >>> with use, use:
    ...     pass
    Traceback (most recent call last):
    RuntimeError: another thread is using this bank, or a key of it: give each thread its own, or take turns
    """

    def __init__(self, what: str) -> None:
        self._lock, self._what = threading.Lock(), what

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"another thread is using {self._what}, or a key of it: give each thread its own, or take turns"
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def exclusively(method: Callable[Concatenate[User, Given], Answer]) -> Callable[Concatenate[User, Given], Answer]:
    """Make a method hold the use of its object, `_use`, while it runs."""

    @wraps(method)
    def held(self: User, /, *args: Given.args, **settings: Given.kwargs) -> Answer:
        with self._use:
            return method(self, *args, **settings)

    return held
