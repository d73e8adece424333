"""Tokens that identify a server's clients, each a small file with a digest of the secret and never the secret.

A token reads ``frt_<id>_<secret>``. The secret has 256 random bits, so its plain SHA-256 is safe on disk. A file is
created and removed whole, so neither the command line nor the server needs a lock, and a running server refuses a
revoked token within a second.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

import msgspec

from fourrates import files

Scope = Literal["ingest", "read", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
FORM = re.compile(r"frt_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
FRESH = 1.0  # seconds for which a file that was read is believed
MOST_CACHED = 1_000
LARGEST = 1 << 16  # bytes of a file
NOBODY = bytes(32)  # compared with if there is no such token, so that both take the same time


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The record of a token; times are in seconds since 1970."""

    id: str  # names it, in lists and logs
    name: str  # whose it is, for people
    scopes: tuple[Scope, ...]  # the permissions; admin includes the others
    monitors: tuple[str, ...] = ()  # those it is good for; empty for all
    created: float
    expires: float | None = None
    digest: str  # SHA-256 of the secret, in hexadecimal

    def allows(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    def is_expired(self, now: float) -> bool:
        return self.expires is not None and now >= self.expires


class Tokens:
    """The tokens of a server, in the folder ``tokens`` of its data.

    Examples
    --------
    >>> import tempfile
    >>> from fourrates.serve.tokens import Tokens
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokens = Tokens(folder.name)
    >>> text, token = tokens.create("card service", ["ingest"], ["fraud"])
    >>> tokens.check(text) == token
    True
    >>> tokens.check(text[:-1] + "!") is None
    True
    >>> tokens.revoke(token.id), tokens.revoke(token.id)
    (True, False)
    >>> folder.cleanup()
    """

    def __init__(self, data: str | os.PathLike[str]) -> None:
        self.folder = Path(data) / "tokens"
        self._cache: dict[str, tuple[float, Token]] = {}

    def create(
        self,
        name: str,
        scopes: tuple[Scope, ...] | list[Scope],
        monitors: tuple[str, ...] | list[str] = (),
        expires: float | None = None,
    ) -> tuple[str, Token]:
        """Create a token; returns its text, which is stored nowhere, and its record."""
        if not scopes or any(scope not in SCOPES for scope in scopes):
            raise ValueError(f"scopes {list(scopes)!r}: at least one of {', '.join(SCOPES)}")
        if monitors and "admin" in scopes:
            raise ValueError("a token with the scope admin is for all monitors")
        secret = secrets.token_bytes(32)
        token = Token(
            id=secrets.token_hex(6),
            name=name,
            scopes=tuple(dict.fromkeys(scopes)),
            monitors=tuple(dict.fromkeys(monitors)),
            created=time.time(),
            expires=expires,
            digest=hashlib.sha256(secret).hexdigest(),
        )
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(token.id)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # for its owner alone, and never another's
        files.write(path, msgspec.json.encode(token))
        self._give_to_server(path)
        return f"frt_{token.id}_{base64.urlsafe_b64encode(secret).decode().rstrip('=')}", token

    def _give_to_server(self, path: Path) -> None:
        """Files made by root are for the user that the server runs as, whose the folder is."""
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            owner = self.folder.parent.stat()
            for made in (self.folder, path):
                os.chown(made, owner.st_uid, owner.st_gid)

    def all(self) -> list[Token]:
        """Every token, oldest first; other files are skipped."""
        ids = [path.stem for path in self.folder.glob("*.json")] if self.folder.is_dir() else []
        return sorted((token for id in ids if (token := self._read(id))), key=lambda token: (token.created, token.id))

    def revoke(self, id: str) -> bool:
        """Remove a token; false if the id is unknown."""
        if re.fullmatch(r"[0-9a-f]{12}", id) is None:
            return False
        self._cache.pop(id, None)
        try:
            self._path(id).unlink()
        except FileNotFoundError:
            return False
        return True

    def check(self, text: str) -> Token | None:
        """The token of a text if it is valid now; an OSError if that cannot be checked."""
        form = FORM.fullmatch(text)
        if form is None:
            return None
        token = self._known(form[1])
        secret = base64.urlsafe_b64decode(form[2] + "=")
        wanted = NOBODY if token is None else bytes.fromhex(token.digest)
        same = hmac.compare_digest(hashlib.sha256(secret).digest(), wanted)
        return token if token is not None and same and not token.is_expired(time.time()) else None

    def _known(self, id: str) -> Token | None:
        now = time.monotonic()
        read, token = self._cache.get(id, (0.0, None))
        if token is None or now - read >= FRESH:
            self._cache.pop(id, None)
            token = self._read(id)
            if token is not None:
                if len(self._cache) >= MOST_CACHED:
                    self._cache.clear()
                self._cache[id] = now, token
        return token

    def _read(self, id: str) -> Token | None:
        missing = (FileNotFoundError, NotADirectoryError)
        with suppress(*missing, ValueError, msgspec.MsgspecError), open(self._path(id), "rb") as file:
            token = msgspec.json.decode(file.read(LARGEST), type=Token)
            if token.id == id and re.fullmatch(r"[0-9a-f]{64}", token.digest) is not None:
                return token
        return None

    def _path(self, id: str) -> Path:
        return self.folder / f"{id}.json"
