"""Authorisation, checked before anything else is done for a request.

With tokens, everything but the page itself and the health checks needs one. The scope ``ingest`` sends events, ``read``
looks, ``admin`` changes settings. On a loopback address no token is needed, so other web pages in somebody's browser
must be kept out. A request must name this machine as its host, or a page could reach the server under a name of its
own, and may not have another origin.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, urlsplit

from fourrates.serve.errors import ApiError, unavailable
from fourrates.serve.tokens import Scope, Tokens

if TYPE_CHECKING:
    from starlette.types import Scope as Request

Need = Scope | Literal["open"]
FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")
LONGEST = 512  # characters of a token


class Access:
    """Whether requests are allowed.

    Without tokens `required`, the host of a request to a `loopback` address must be one too. `origins` are those of
    pages that may call, besides the server's own.
    """

    def __init__(
        self, tokens: Tokens, *, required: bool = True, loopback: bool = True, origins: Iterable[str] = ()
    ) -> None:
        self.tokens, self.required, self.loopback = tokens, required, loopback
        self.origins = frozenset(origins)

    def check(self, scope: Request, wanted: Need, monitor: str | None) -> None:
        """Raise an ApiError if a request, for a monitor or for none, is not allowed."""
        if not self.required:
            self._check_browser(scope)
        elif wanted != "open":
            self._check_token(scope, wanted, monitor)
            scope["still_allowed"] = partial(self._is_allowed, scope, wanted, monitor)

    def _is_allowed(self, scope: Request, wanted: Scope, monitor: str | None) -> bool:
        """Checked again while a request lasts, as its token may have expired or been revoked."""
        try:
            self._check_token(scope, wanted, monitor)
        except ApiError:
            return False
        return True

    def _check_token(self, scope: Request, wanted: Scope, monitor: str | None) -> None:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            raise _unauthorized("a token is needed: Authorization: Bearer TOKEN (`fourrates token create` makes one)")
        kind, _, text = given[0].decode("latin-1").partition(" ")
        if kind.lower() == "basic" and wanted == "ingest":  # http://any:TOKEN@host is all that KServe can be given
            kind, text = "bearer", _password(text)
        try:
            token = self.tokens.check(text.strip()) if len(given) == 1 and len(text) <= LONGEST else None
        except OSError as error:  # no free descriptors; the token may be a good one
            raise unavailable(f"tokens cannot be read now: {error.strerror}") from None
        if kind.lower() != "bearer" or token is None:
            raise _unauthorized("there is no such token, or it was revoked or has expired")
        scope["token"] = token.id
        if not token.allows(wanted):
            held = ", ".join(token.scopes)
            raise ApiError(403, "forbidden", f"this needs a token with the scope {wanted}; this one has {held}")
        if token.monitors:
            if scope["path"] == "/api/stream":
                asked = parse_qs(scope["query_string"].decode("latin-1")).get("monitor", [])
                monitor = asked[0] if len(asked) == 1 else None
            if monitor not in token.monitors:
                raise ApiError(403, "forbidden", "this token is for other monitors only")

    def _check_browser(self, scope: Request) -> None:
        """Without tokens, keep out pages of other sites and requests through a proxy."""
        headers = dict(scope["headers"])
        names = [name for name, _ in scope["headers"]]
        if names.count(b"host") != 1 or names.count(b"origin") > 1:
            raise ApiError(400, "bad_headers", "a request has one Host header, and at most one Origin")
        host = headers[b"host"].decode("latin-1")
        if self.loopback:
            if not _is_loopback(host):
                raise ApiError(421, "foreign_host", f"this server is not {host!r:.200}, and no token is required")
            if any(name in headers for name in FORWARDED):
                raise ApiError(
                    403, "forwarded", "a proxy forwards this: start the server with tokens required, and send one"
                )
        origin = headers.get(b"origin")
        if origin is not None and (given := origin.decode("latin-1")) not in self.origins:
            try:
                own = urlsplit(given).netloc == host
            except ValueError:
                own = False
            if not own:
                raise ApiError(403, "foreign_origin", f"pages of {given!r:.200} may not call this server")


def _password(text: str) -> str:
    """The password in basic credentials; empty if there is none."""
    try:
        return base64.b64decode(text.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})


@lru_cache(maxsize=100)
def _is_loopback(host: str) -> bool:
    """Whether a Host header names this machine as only this machine can."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
