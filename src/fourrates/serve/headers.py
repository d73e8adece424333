"""Headers of requests and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fourrates.serve.errors import ApiError

if TYPE_CHECKING:
    from starlette.types import Scope

SECURITY = [  # of every answer
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def header(scope: Scope, name: bytes) -> str:
    """A header of a request; empty if it is not there."""
    for one, value in scope["headers"]:
        if one == name:
            return str(value, "latin-1").strip()
    return ""


def raw_headers(error: ApiError) -> list[tuple[bytes, bytes]]:
    """The headers that an error asks for, as they are sent."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in error.headers.items()]
