"""Errors that end a command early, invalid input, and Ctrl-C. Everything else is a defect of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fourrates.io import InputError


class Stopped(Exception):
    """Ctrl-C, after some work was done; the message has a summary."""


@contextmanager
def checked(errors: type[Exception] | tuple[type[Exception], ...] = (ValueError, TypeError)) -> Iterator[None]:
    """Report these errors of the library as the user's.

    Wrap only the calls that check the user's own input; any other ValueError is a defect.
    """
    try:
        yield
    except InputError:
        raise
    except errors as error:
        raise InputError(str(error)) from error
