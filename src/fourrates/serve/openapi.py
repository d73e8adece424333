"""``/openapi.json``, the API as it is.

Paths, methods and descriptions derive from the routes, queries and bodies from the structs they are read into. Answers
are objects; docs/serve.md shows what is in them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Route

import fourrates
from fourrates.events.rows import BAD
from fourrates.serve.access import needed
from fourrates.serve.api import Acknowledgement, Silence
from fourrates.serve.batch import KINDS
from fourrates.serve.bodies import Body
from fourrates.serve.config import NAME, MonitorConfig

ONE = "/api/monitors/{name}"
REF = "#/components/schemas/{name}"
JSON = "application/json"
EXTRA_TYPES = ("application/x-ndjson", "application/vnd.apache.arrow.stream")
ERRORS = {
    "400": "The body cannot be read.",
    "401": "A token is needed.",
    "403": "The token is for something else.",
    "404": "There is no such monitor, or nothing of this name in it.",
    "408": "The request took too long to arrive.",
    "409": "The present state does not allow it.",
    "413": "The body, or the number of rows in it, is too large.",
    "415": "The body is of a type or an encoding that is not taken.",
    "421": "The server is not of this name.",
    "422": "The request cannot be used; the error names the problem and its place.",
    "503": "The store cannot be used just now; send the same again later.",
}
Schema = dict[str, Any]
OBJECT: Schema = {"type": "object"}
STRING: Schema = {"type": "string"}
COLUMN: Schema = {"type": "array", "items": {"type": ["boolean", "integer", "number", "string"]}}
ERROR: Schema = {**OBJECT, "properties": {"error": {**OBJECT, "required": ["code", "message", "where"]}}}
BATCH: Schema = {
    **OBJECT,
    "properties": dict.fromkeys(Body.__struct_fields__, COLUMN) | {"by": {**OBJECT, "additionalProperties": COLUMN}},
    "description": "`truth` and `pred` are other names of `y_true` and `y_pred`; `score` may replace `y_pred`. "
    "With an `id` a pair counts once.",
}
REQUIRED = {"events": ["y_true", "y_pred"], "predictions": ["id", "y_pred"], "labels": ["id", "y_true"]}
BODIES: dict[tuple[str, str], type | Schema] = {
    **{("POST", f"{ONE}/{kind}"): {**BATCH, "required": names} for kind, names in REQUIRED.items()},
    ("POST", f"{ONE}/cloudevents"): OBJECT,
    ("PUT", ONE): MonitorConfig,
    ("PATCH", ONE): {**OBJECT, "description": "Fields of MonitorConfig; null sets the default."},
    ("PUT", f"{ONE}/silence"): Silence,
    **{("POST", f"{ONE}/drifts/{{id}}/{act}"): Acknowledgement for act in ("acknowledge", "accept")},
}
INGEST: list[Schema] = [
    {
        "name": "bad",
        "in": "query",
        "schema": {"enum": [*BAD], "default": "reject"},
        "description": "A bad row rejects the request, is left out and counted, or left out and kept with its reason.",
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {**STRING, "maxLength": 200},
        "description": "The same key with the same body counts once, however often it is sent.",
    },
]


def openapi(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    structs = [body for body in BODIES.values() if isinstance(body, type)]
    _, components = msgspec.json.schema_components(structs, ref_template=REF)
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
            "schemas": {**components, "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(method: str, route: Route) -> dict[str, Any]:
    kind = route.path.rpartition("/")[2]
    is_ingest = method == "POST" and kind in KINDS
    scope, _ = needed(method, re.sub(r"\{.*?\}", "x", route.path))
    body = BODIES.get((method, route.path))
    summary = (inspect.getdoc(route.endpoint) or "").partition("\n")[0]
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()}{re.sub(r'[^a-z]+', '_', route.path.lower()).rstrip('_')}",
        "summary": f"Take {kind}; the answer means that they are on disk." if is_ingest else summary,
        "parameters": [*_in_path(route.path), *(INGEST if is_ingest else _in_query(route.endpoint))],
        "responses": {
            **_success(method, route.path),
            **_errors(method, route.path, body is not None, scope is not None),
        },
    }
    if scope is not None:
        operation["security"] = [{"token": []}, {}]
        operation["description"] = (
            f"Needs a token with the scope `{scope}`, unless the server is on a loopback address."
        )
    if body is not None:
        schema = {"$ref": REF.format(name=body.__name__)} if isinstance(body, type) else body
        content: dict[str, Any] = {JSON: {"schema": schema}}
        if is_ingest:
            content |= {name: {"schema": STRING} for name in EXTRA_TYPES}
        operation["requestBody"] = {"required": body is not Acknowledgement, "content": content}
    return operation


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
        if name == "name":
            schema["pattern"] = f"^{NAME.pattern}$"
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(call: Any) -> Iterator[dict[str, Any]]:
    """The fields of the struct that the query of a call is read into."""
    if (query := getattr(call, "query", None)) is not None:
        fields = msgspec.json.schema_components([query])[1][query.__name__]
        for name, schema in fields["properties"].items():
            kinds = [kind for kind in schema.pop("anyOf", ()) if kind != {"type": "null"}]
            yield {"name": name, "in": "query", "schema": (kinds[0] if kinds else schema)}


def _success(method: str, path: str) -> dict[str, Any]:
    if (method, path) == ("DELETE", ONE):
        return {"204": {"description": "Gone."}}
    content_type = "text/event-stream" if path == "/api/stream" else JSON
    if not path.startswith(("/api/", "/openapi")) or path.endswith("/cloudevents"):
        content_type = "text/plain"
    content = {content_type: {"schema": OBJECT if content_type == JSON else STRING}}
    codes = {"200": "Done."} | ({"201": "Made."} if (method, path) == ("PUT", ONE) else {})
    return {code: {"description": meaning, "content": content} for code, meaning in codes.items()}


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
    if method in ("PUT", "PATCH") or path.endswith(("/accept", "/to-label")):
        codes |= {"409"}
    content = {JSON: {"schema": {"$ref": REF.format(name="Error")}}}
    return {code: {"description": ERRORS[code], "content": content} for code in sorted(codes)}
