"""One shape for every error: ``{"error": {"code": "bad_label", "message": "...", "where": {...}}}``."""

from __future__ import annotations

from typing import Any

import msgspec


class ApiError(Exception):
    """What a request is answered with instead of a result.

    Parameters
    ----------
    status : int
        The HTTP status.
    code : str
        For programs: stays the same whatever the message says.
    message : str
        For people: what is wrong, where, and what is accepted.
    where : dict, optional
        The row, column or field.
    headers : dict, optional
        Headers of the answer, such as Retry-After.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        where: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.where = status, code, message, where or {}
        self.headers = headers or {}

    def body(self) -> bytes:
        """The answer as JSON."""
        return error_body(self.code, self.message, self.where)


def error_body(code: str, message: str, where: dict[str, Any] | None = None) -> bytes:
    """An error as JSON."""
    return msgspec.json.encode({"error": {"code": code, "message": message, "where": where or {}}})


def no_monitor(name: str) -> ApiError:
    """There is no monitor of this name."""
    return ApiError(404, "no_monitor", f"there is no monitor {name!r:.200}", {"monitor": name[:200]})


def unavailable(problem: str) -> ApiError:
    """The store cannot be written to just now; the client may send the same again."""
    return ApiError(503, "unavailable", problem, headers={"Retry-After": "1"})
