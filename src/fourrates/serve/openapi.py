"""``/openapi.json``, the API as it is.

Paths, queries, bodies and descriptions are those of the calls. Answers are objects; docs/serve.md shows what they hold.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

import fourrates
from fourrates.serve.bodies import Body
from fourrates.serve.config import NAME
from fourrates.serve.front import Call
from fourrates.serve.ingest import LONGEST_KEY

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
CONFIG_CHANGE: Schema = {**OBJECT, "description": "Fields of MonitorConfig; null sets the default."}
KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {**STRING, "maxLength": LONGEST_KEY},
    "description": "The same key with the same body counts once, however often it is sent.",
}


def batch_schema(*required: str) -> Schema:
    """The columns of a batch, of which these are always needed."""
    columns = dict.fromkeys(Body.__struct_fields__, COLUMN) | {"by": {**OBJECT, "additionalProperties": COLUMN}}
    description = (
        "`truth` and `pred` are other names of `y_true` and `y_pred`; `score` may replace `y_pred`. "
        "With an `id` a pair counts once."
    )
    return {**OBJECT, "properties": columns, "required": [*required], "description": description}


def openapi(calls: Sequence[Call]) -> dict[str, Any]:
    structs = {call.body for call in calls if isinstance(call.body, type)}
    _, components = msgspec.json.schema_components(structs, ref_template=REF)
    paths: dict[str, Any] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call)
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


def _operation(call: Call) -> dict[str, Any]:
    is_batch = isinstance(call.body, dict) and "required" in call.body
    name = re.sub(r"[^a-z]+", "_", call.path.lower()).rstrip("_")
    operation: dict[str, Any] = {
        "operationId": f"{call.method.lower()}{name}",
        "summary": (inspect.getdoc(call.answer) or "").partition("\n")[0],
        "parameters": [*_in_path(call.path), *_in_query(call.query), *([KEY] if is_batch else [])],
        "responses": {**_success(call.method, call.path), **_errors(call)},
    }
    if call.scope != "open":
        operation["security"] = [{"token": []}, {}]
        operation["description"] = (
            f"Needs a token with the scope `{call.scope}`, unless the server is on a loopback address."
        )
    if call.body is not None:
        schema = {"$ref": REF.format(name=call.body.__name__)} if isinstance(call.body, type) else call.body
        content: dict[str, Any] = {JSON: {"schema": schema}}
        if is_batch:
            content |= {name: {"schema": STRING} for name in EXTRA_TYPES}
        is_needed = isinstance(call.body, dict) or any(field.required for field in msgspec.structs.fields(call.body))
        operation["requestBody"] = {"required": is_needed, "content": content}
    return operation


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
        if name == "name":
            schema["pattern"] = f"^{NAME.pattern}$"
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(query: type[msgspec.Struct]) -> Iterator[dict[str, Any]]:
    fields = msgspec.json.schema_components([query])[1][query.__name__]
    for name, schema in fields["properties"].items():
        kinds = [kind for kind in schema.pop("anyOf", ()) if kind != {"type": "null"}]
        yield {"name": name, "in": "query", "schema": kinds[0] if kinds else schema}


def _success(method: str, path: str) -> dict[str, Any]:
    if (method, path) == ("DELETE", ONE):
        return {"204": {"description": "Gone."}}
    content_type = "text/event-stream" if path == "/api/stream" else JSON
    if not path.startswith(("/api/", "/openapi")) or path.endswith("/cloudevents"):
        content_type = "text/plain"
    content = {content_type: {"schema": OBJECT if content_type == JSON else STRING}}
    codes = {"200": "Done."} | ({"201": "Made."} if (method, path) == ("PUT", ONE) else {})
    return {code: {"description": meaning, "content": content} for code, meaning in codes.items()}


def _errors(call: Call) -> dict[str, Any]:
    method, path = call.method, call.path
    codes = {"408", "421", "403"}
    if path.startswith("/api/"):
        codes |= {"422", "503"}
    if call.scope != "open":
        codes |= {"401"}
    if "{name}" in path or path == "/api/stream":
        codes |= {"404"}
    if call.body is not None:
        codes |= {"400", "413", "415"}
    if method in ("PUT", "PATCH") or path.endswith(("/accept", "/to-label")):
        codes |= {"409"}
    content = {JSON: {"schema": {"$ref": REF.format(name="Error")}}}
    return {code: {"description": ERRORS[code], "content": content} for code in sorted(codes)}
