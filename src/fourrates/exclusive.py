"""One user at a time; concurrent use is an error, and corrupts nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
User = TypeVar("User", bound=Any)


class ExclusiveUse:
    """Held by one user at a time; an error for all others, even in the same thread, as keys may use their bank."""

    def __init__(self, what: str) -> None:
        self._lock, self._what = threading.Lock(), what

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"another thread is using {self._what}, or a key of it; give each thread its own, or take turns"
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
