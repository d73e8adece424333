"""``/openapi.json``: the API as it is.

Paths, methods and descriptions derive from the routes, the settings of a monitor from the struct they are decoded by.
The shapes of bodies and answers are written here; the tests compare them with real ones.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import msgspec
from starlette.routing import BaseRoute, Route

import fourrates
from fourrates.events.rows import BAD
from fourrates.findings import Condition, Kind
from fourrates.serve.access import needed
from fourrates.serve.batch import KINDS
from fourrates.serve.config import NAME, MonitorConfig

ONE = "/api/monitors/{name}"
REF = "#/components/schemas/{name}"
JSON = "application/json"
EXTRA_TYPES = ("application/x-ndjson", "application/vnd.apache.arrow.stream")
STATUSES = {"200": "Done.", "201": "Made.", "204": "Gone."}
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
Schema = dict[str, Any]


def _ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _map(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _record(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": [*fields]}


def _each(schema: Schema, *names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, schema)


BOOL: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
STRING: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
MOMENT: Schema = {"type": "string", "format": "date-time"}
STATUS: Schema = {"enum": ["stable", "warning", "drifted", "waiting"]}
DIRECTION: Schema = {"enum": ["up", "down"]}
LABEL: Schema = {"type": ["boolean", "integer", "number", "string"]}
MATRIX, COLUMN, NUMBERS, SEGMENT = _list(_list(COUNT)), _list(LABEL), _list(_maybe(NUMBER)), _maybe(OBJECT)
INTERVAL = _record(**_each(_maybe(NUMBER), "value", "lower", "upper", "n"))
RATE_NOW = _record(state={"enum": [*get_args(Condition)]}, normal=_maybe(INTERVAL), now=_maybe(INTERVAL), enough=COUNT)
MAYBE_NUMBER, MAYBE_WHOLE, MAYBE_MOMENT = _maybe(NUMBER), _maybe(WHOLE), _maybe(MOMENT)

SCHEMAS: dict[str, Schema] = {
    "Error": _record(error=_record(code=STRING, message=STRING, where=OBJECT)),
    "Summary": _record(
        name=STRING,
        status=STATUS,
        evidence=SHARE,
        open=_list(_ref("OpenDrift")),
        worst=_maybe(_record(segment=SEGMENT, rate=STRING, **RATE_NOW["properties"])),
        label_delay=MAYBE_NUMBER,
        deployments=_list(_record(version=STRING, time=MAYBE_MOMENT, event=WHOLE, serves=BOOL)),
        **_each(
            COUNT, "events", "events_last_hour", "waiting", "waiting_labels", "segments", "drifted_segments", "drifts"
        ),
        **_each(MAYBE_MOMENT, "since", "last_event", "silenced_until"),
        **_each(_maybe(_ref("Finding")), "last_finding", "drift"),
    ),
    "Rate": _record(
        n=NUMBER,
        baseline=_maybe(INTERVAL),
        **_each(MAYBE_NUMBER, "estimate", "lower", "upper", "evidence", "dispersion"),
        **RATE_NOW["properties"],
    ),
    "RateNow": RATE_NOW,
    "OpenDrift": _record(
        segment=SEGMENT,
        version=_maybe(STRING),
        at=WHOLE,
        started=MAYBE_WHOLE,
        confirmed=BOOL,
        harm=NUMBER,
        directions=_map(DIRECTION),
        cost=_maybe(_record(text=STRING, days=MAYBE_NUMBER, **_each(NUMBER, "value", "lower", "upper"))),
        now=_map(_ref("RateNow")),
        **_each(MAYBE_MOMENT, "time", "started_time"),
    ),
    "Detail": {
        "allOf": [
            _ref("Summary"),
            _record(
                config=OBJECT,
                arl=NUMBER,
                labels=COLUMN,
                rates=_map(_ref("Rate")),
                mix=_map(MAYBE_NUMBER),
                confusion=MATRIX,
                shift=_maybe(_record(at=WHOLE, started=MAYBE_WHOLE, before=INTERVAL, after=INTERVAL)),
                counts=_map(COUNT),
            ),
        ]
    },
    "Change": _record(
        rate=STRING, direction=DIRECTION, evidence=MAYBE_NUMBER, **_each(_maybe(INTERVAL), "before", "after")
    ),
    "Finding": _record(
        kind={"enum": [*get_args(Kind)]},
        segment=SEGMENT,
        version=_maybe(STRING),
        at=WHOLE,
        closes=BOOL,
        started_between=_maybe(_list(WHOLE)),
        changes=_list(_ref("Change")),
        **_each(STRING, "id", "monitor", "text"),
        **_each(_maybe(STRING), "acknowledged_by", "note"),
        **_each(MAYBE_WHOLE, "drift", "since", "started"),
        **_each(MAYBE_MOMENT, "time", "started_time", "acknowledged"),
        **_each(_maybe(MATRIX), "confusion", "confusion_before", "confusion_after"),
    ),
    "Segment": _record(
        segment=SEGMENT,
        status=STATUS,
        evidence=_maybe(SHARE),
        events=COUNT,
        rates=_map(_ref("RateNow")),
        silenced_until=MAYBE_MOMENT,
        **_each(BOOL, "pinned", "discovery"),
    ),
    "Taken": _record(findings=_list(STRING), **_each(COUNT, "accepted", "repeated", "rejected")),
}

# By method and path; ingest is the same for its three paths.
INGEST = ("POST", "ingest")
SINK = ("POST", f"{ONE}/cloudevents")
ANSWERS: dict[tuple[str, str], Schema] = {
    INGEST: _ref("Taken"),
    ("GET", "/api/monitors"): _record(
        monitors=_list({"allOf": [_ref("Summary"), _record(spark=_maybe(_record(time=NUMBERS, value=NUMBERS)))]}),
        damaged=_list(_record(name=STRING, problem=STRING)),
    ),
    ("GET", ONE): _ref("Detail"),
    ("PUT", ONE): _ref("Detail"),
    ("PATCH", ONE): _ref("Detail"),
    ("GET", f"{ONE}/drifts"): _record(drifts=_list(_ref("Finding"))),
    ("GET", f"{ONE}/drifts/{{id}}"): _ref("Finding"),
    ("GET", f"{ONE}/drifts/{{id}}/examples"): _record(
        ids=_list({"type": ["integer", "number", "string"]}), complete=BOOL
    ),
    ("POST", f"{ONE}/drifts/{{id}}/acknowledge"): _ref("Finding"),
    ("POST", f"{ONE}/drifts/{{id}}/accept"): _ref("Finding"),
    ("GET", f"{ONE}/segments/series"): _record(segment=SEGMENT, time=NUMBERS, rates=OBJECT),
    ("GET", f"{ONE}/segments"): _record(segments=_list(_ref("Segment")), total=COUNT),
    ("GET", f"{ONE}/series"): _record(
        rates=OBJECT, **_each(NUMBERS, "time", "event", "evidence", "label_delay", "mix")
    ),
    ("GET", f"{ONE}/rejected"): _record(rejected=_list(_record(time=_maybe(MOMENT), problem=STRING))),
    ("PUT", f"{ONE}/silence"): _ref("Summary"),
    ("DELETE", f"{ONE}/silence"): _ref("Summary"),
    ("POST", f"{ONE}/test-alert"): _record(
        id=STRING, channels=_list(_record(channel=STRING, delivered=BOOL, problem=_maybe(STRING)))
    ),
    ("GET", "/openapi.json"): OBJECT,
}
BATCH: Schema = {
    "type": "object",
    "properties": {
        **_each(COLUMN, "y_true", "y_pred", "truth", "pred"),
        "score": _list(NUMBER),
        "version": COLUMN,
        "id": _list({"type": ["integer", "string"]}),
        "time": _list({"type": ["number", "string"]}),
        "by": _map(COLUMN),
    },
    "description": "`truth` and `pred` are other names of `y_true` and `y_pred`; `score` may stand for `y_pred`. "
    "With an `id` a pair counts once.",
}
ACKNOWLEDGEMENT: Schema = {"type": "object", "properties": _each(_maybe(STRING), "by", "note")}
REQUIRED = {"events": ["y_true", "y_pred"], "predictions": ["id", "y_pred"], "labels": ["id", "y_true"]}
BODIES: dict[tuple[str, str], Schema] = {
    **{("POST", f"{ONE}/{kind}"): {**BATCH, "required": names} for kind, names in REQUIRED.items()},
    SINK: {**OBJECT, "description": "An event as its attributes in headers (ce-type, ce-id) or all in one object."},
    ("PUT", ONE): _ref("MonitorConfig"),
    ("PATCH", ONE): {"type": "object", "description": "Fields of MonitorConfig; null sets the default."},
    ("PUT", f"{ONE}/silence"): {
        "type": "object",
        "properties": {"until": MOMENT, "segment": SEGMENT},
        "required": ["until"],
    },
    ("POST", f"{ONE}/drifts/{{id}}/acknowledge"): ACKNOWLEDGEMENT,
    ("POST", f"{ONE}/drifts/{{id}}/accept"): ACKNOWLEDGEMENT,
}


def _parameter(name: str, schema: Schema, meaning: str, place: str = "query") -> Schema:
    return {"name": name, "in": place, "required": False, "schema": schema, "description": meaning}


def _number(name: str, least: int, most: int, default: int) -> Schema:
    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return _parameter(name, schema, f"From {least} to {most:,}.")


OF_SEGMENT = _parameter("segment", STRING, 'The values of a segment in the order of `by`, as JSON: ["FR"].')
LIMIT = _number("limit", 1, 1_000, 100)
PARAMETERS: dict[tuple[str, str], list[Schema]] = {
    INGEST: [
        _parameter(
            "bad",
            {"enum": [*BAD], "default": "reject"},
            "A bad row rejects the request, is left out and counted, or is left out and kept with its reason.",
        ),
        _parameter(
            "Idempotency-Key",
            {"type": "string", "maxLength": 200},
            "The same key with the same body counts once, however often it is sent.",
            "header",
        ),
    ],
    SINK: [
        _parameter("bad", {"enum": [*BAD], "default": "keep"}, "What becomes of a bad row."),
        _parameter("pred", STRING, "The output that is the prediction; the first by default."),
        _parameter("score", STRING, "The output that is a score."),
        _parameter("id", STRING, "The input that has the ids by which labels come; else those of the request."),
    ],
    ("GET", f"{ONE}/drifts"): [
        LIMIT,
        _parameter("before", STRING, "The id of a finding: older ones than this."),
        _parameter("of", {"enum": ["all", "overall"]}, "Those of segments too, or the overall ones alone."),
        OF_SEGMENT,
    ],
    ("GET", f"{ONE}/segments"): [LIMIT, _number("offset", 0, 1 << 31, 0), OF_SEGMENT],
    ("GET", f"{ONE}/segments/series"): [OF_SEGMENT],
    ("DELETE", f"{ONE}/silence"): [OF_SEGMENT],
    ("GET", f"{ONE}/series"): [_number("points", 2, 2_000, 600), _number("seconds", 1, 1 << 31, 1 << 31)],
    ("GET", f"{ONE}/rejected"): [LIMIT],
    ("GET", "/api/stream"): [
        _parameter("monitor", STRING, "Only what is about this monitor."),
        _parameter("Last-Event-ID", STRING, "The last event that was seen: those after it are sent first.", "header"),
    ],
}


def openapi(routes: Sequence[BaseRoute]) -> dict[str, Any]:
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
    is_ingest = method == "POST" and kind in KINDS
    key = INGEST if is_ingest else (method, route.path)
    scope, _ = needed(method, re.sub(r"\{.*?\}", "x", route.path))
    body = BODIES.get((method, route.path))
    summary = (inspect.getdoc(route.endpoint) or "").partition("\n")[0]
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()}{re.sub(r'[^a-z]+', '_', route.path.lower()).rstrip('_')}",
        "summary": f"Take {kind}; the answer means that they are on disk." if is_ingest else summary,
        "parameters": [*_in_path(route.path), *PARAMETERS.get(key, [])],
        "responses": {**_success(*key), **_errors(method, route.path, body is not None, scope is not None)},
    }
    if scope is not None:
        operation["security"] = [{"token": []}, {}]
        operation["description"] = (
            f"Needs a token with the scope `{scope}`, unless the server is on a loopback address."
        )
    if body is not None:
        content: dict[str, Any] = {JSON: {"schema": body}}
        if is_ingest:
            content |= {name: {"schema": STRING} for name in EXTRA_TYPES}
        operation["requestBody"] = {"required": body is not ACKNOWLEDGEMENT, "content": content}
    return operation


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
        if name == "name":
            schema["pattern"] = f"^{NAME.pattern}$"
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _success(method: str, path: str) -> dict[str, Any]:
    if (method, path) == ("DELETE", ONE):
        return {"204": {"description": STATUSES["204"]}}
    content_type, schema = JSON, ANSWERS.get((method, path))
    if schema is None:
        content_type, schema = "text/event-stream" if path == "/api/stream" else "text/plain", STRING
    statuses = ("200", "201") if (method, path) == ("PUT", ONE) else ("200",)
    content = {content_type: {"schema": schema}}
    return {status: {"description": STATUSES[status], "content": content} for status in statuses}


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
    if method in ("PUT", "PATCH") or path.endswith("/accept"):
        codes |= {"409"}
    content = {JSON: {"schema": _ref("Error")}}
    return {code: {"description": ERRORS[code], "content": content} for code in sorted(codes)}
