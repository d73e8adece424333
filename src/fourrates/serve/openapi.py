"""``/openapi.json``: the API as it is.

Paths, methods, parameters and what each does come from the routes themselves, the settings of a monitor from the struct
they are decoded by; the rest is here, and is held against real answers by the tests.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Route

import fourrates
from fourrates.serve.access import needed
from fourrates.serve.config import NAME, MonitorConfig
from fourrates.serve.schemas import ANSWERS, BODIES, PARAMETERS, SCHEMAS, STATUSES

REF = "#/components/schemas/{name}"
JSON = "application/json"
INGEST = ("events", "predictions", "labels")
EXTRA_TYPES = ("application/x-ndjson", "application/vnd.apache.arrow.stream")
ERRORS = {
    "400": "The body cannot be read.",
    "401": "A token is needed.",
    "403": "The token is for something else.",
    "404": "There is no such monitor, or nothing of this name in it.",
    "408": "The request took too long to arrive.",
    "409": "What is there already does not allow it.",
    "413": "The body, or the number of rows in it, is too large.",
    "415": "The body is of a type or an encoding that is not taken.",
    "421": "The server is not of this name.",
    "422": "The request cannot be used; the error says what is wrong, and where.",
    "503": "The store cannot be used just now: send the same again later.",
}


def openapi(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """The description of these routes, as OpenAPI 3.1 has it."""
    _, components = msgspec.json.schema_components([MonitorConfig], ref_template=REF)
    paths: dict[str, Any] = {}
    for route in routes:
        if isinstance(route, Route):
            for method in sorted((route.methods or set()) - {"HEAD"}):
                paths.setdefault(route.path, {})[method.lower()] = _operation(method, route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fourrates serve",
            "version": fourrates.__version__,
            "description": "Predictions and labels in, drifts out. Every answer to a batch means that it is on disk.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, **SCHEMAS},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(method: str, route: Route) -> dict[str, Any]:
    kind = route.path.rpartition("/")[2]
    is_ingest = method == "POST" and kind in INGEST
    scope, _ = needed(method, re.sub(r"\{.*?\}", "x", route.path))
    key = (method, route.path)
    body = BODIES.get(kind if is_ingest else key)
    found: dict[str, Any] = {
        "operationId": f"{method.lower()}{re.sub(r'[^a-z]+', '_', route.path.lower()).rstrip('_')}",
        "summary": _summary(route, kind if is_ingest else None),
        "parameters": [*_in_path(route.path), *PARAMETERS.get("ingest" if is_ingest else key, [])],
        "responses": {**_success(key, is_ingest), **_errors(method, route.path, body is not None, scope is not None)},
    }
    if scope is not None:
        found["security"] = [{"token": []}, {}]
        found["description"] = f"Needs a token with the scope `{scope}`, unless the server is on a loopback address."
    if body is not None:
        content: dict[str, Any] = {JSON: {"schema": body}}
        if is_ingest:
            content |= {name: {"schema": {"type": "string"}} for name in EXTRA_TYPES}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _summary(route: Route, ingest: str | None) -> str:
    """What an endpoint does, in its own words."""
    if ingest is not None:
        return f"Take {ingest}; the answer means that they are on disk."
    return (inspect.getdoc(route.endpoint) or "").partition("\n")[0]


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
        if name == "name":
            schema["pattern"] = f"^{NAME.pattern}$"
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _success(key: tuple[str, str], is_ingest: bool) -> dict[str, Any]:
    found = {}
    for status, content_type, schema in ANSWERS["ingest" if is_ingest else key]:
        content = {} if content_type is None else {"content": {content_type: {"schema": schema}}}
        found[status] = {"description": STATUSES[status], **content}
    return found


def _errors(method: str, path: str, has_body: bool, needs_token: bool) -> dict[str, Any]:
    codes = {"408", "421", "403"}
    if path.startswith("/api/"):
        codes |= {"422", "503"}
    if needs_token:
        codes |= {"401"}
    if "{name}" in path or path == "/api/stream":
        codes |= {"404"}
    if has_body:
        codes |= {"400", "413", "415"}
    if method in ("PUT", "PATCH"):
        codes |= {"409"}
    error = {JSON: {"schema": {"$ref": REF.format(name="Error")}}}
    return {code: {"description": ERRORS[code], "content": error} for code in sorted(codes)}
