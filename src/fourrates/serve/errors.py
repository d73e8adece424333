"""One shape for every error: ``{"error": {"code": "bad_label", "message": "...", "where": {...}}}``."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response


class ApiError(Exception):
    """An error answer to a request.

    `code` is for programs and stays the same whatever the `message` for people; `where` has the row, column or field.
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

    def response(self) -> Response:
        body = error_body(self.code, self.message, self.where)
        return Response(body, self.status, headers=self.headers, media_type="application/json")


def error_body(code: str, message: str, where: dict[str, Any] | None = None) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "message": message, "where": where or {}}})


def no_monitor(name: str) -> ApiError:
    return ApiError(404, "no_monitor", f"there is no monitor {name!r:.200}", {"monitor": name[:200]})


def unavailable(problem: str) -> ApiError:
    """The store cannot be written to just now; the client may send the same again."""
    return ApiError(503, "unavailable", problem, headers={"Retry-After": "1"})


def defect() -> ApiError:
    """Something that should not happen, and is no fault of the request."""
    return ApiError(500, "defect", "a defect of fourrates, not of your request; the log has more")
