"""What ends a command early: input that cannot be used, and Ctrl-C. Everything else is a defect of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fourrates.io import InputError


class Stopped(Exception):
    """Ctrl-C, after some work was done; the message says what."""


@contextmanager
def checked() -> Iterator[None]:
    """The border: what the library refuses in here was asked for by the person, who is told so.

    Only the calls that check what was asked for belong in here. A ValueError from anywhere else is not theirs.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.cli.errors import checked
    >>> with checked():
    ...     fr.LFR(decay=2)
    Traceback (most recent call last):
    ...
    fourrates.io.InputError: decay 2.0 is not in (0, 1)
    """
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
