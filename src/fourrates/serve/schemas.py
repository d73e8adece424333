"""The shapes of bodies and answers, as JSON Schema; :mod:`fourrates.serve.openapi` puts them to the routes."""

from __future__ import annotations

from typing import Any, get_args

from fourrates.events.rows import BAD
from fourrates.findings import Condition, Kind

ONE = "/api/monitors/{name}"
JSON, TEXT = "application/json", "text/plain"
Schema = dict[str, Any]
Key = str | tuple[str, str]


def ref(name: str) -> Schema:
    """A schema of the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def listed(schema: Schema) -> Schema:
    """A list of them."""
    return {"type": "array", "items": schema}


def record(optional: tuple[str, ...] = (), **fields: Schema) -> Schema:
    """An object that has all of these fields, but for those that it may lack."""
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in optional],
    }


NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
STRING: Schema = {"type": "string"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
MOMENT: Schema = {"type": "string", "format": "date-time"}
MATRIX: Schema = listed(listed(COUNT))
LABEL: Schema = {"type": ["boolean", "integer", "number", "string"]}
SEGMENT: Schema = maybe({"type": "object"})

INTERVAL = record(value=maybe(NUMBER), lower=maybe(NUMBER), upper=maybe(NUMBER), n=maybe(NUMBER))
CHANGE = record(
    rate=STRING,
    direction={"enum": ["up", "down"]},
    before=maybe(INTERVAL),
    after=maybe(INTERVAL),
    evidence=maybe(NUMBER),
)
STATE = record(
    state={"enum": [*get_args(Condition)]},
    normal=maybe(INTERVAL),
    now=maybe(INTERVAL),
    enough=COUNT,
)
OPEN = record(
    segment=SEGMENT,
    at=WHOLE,
    started=maybe(WHOLE),
    time=maybe(MOMENT),
    started_time=maybe(MOMENT),
    confirmed={"type": "boolean"},
    harm=NUMBER,
    directions={"type": "object", "additionalProperties": {"enum": ["up", "down"]}},
    now={"type": "object", "additionalProperties": ref("RateNow")},
)
SUMMARY = record(
    name=STRING,
    status={"enum": ["stable", "warning", "drifted", "waiting"]},
    since=maybe(MOMENT),
    evidence=SHARE,
    events=COUNT,
    events_last_hour=COUNT,
    waiting=COUNT,
    waiting_labels=COUNT,
    segments=COUNT,
    drifted_segments=COUNT,
    open=listed(ref("OpenDrift")),
    worst=maybe(record(segment=SEGMENT, rate=STRING, **STATE["properties"])),
    label_delay=maybe(NUMBER),
    last_event=maybe(MOMENT),
    drifts=COUNT,
    last_finding=maybe(ref("Finding")),
    drift=maybe(ref("Finding")),
    silenced_until=maybe(MOMENT),
)
RATE = record(
    estimate=maybe(NUMBER),
    lower=maybe(NUMBER),
    upper=maybe(NUMBER),
    n=NUMBER,
    baseline=maybe(INTERVAL),
    evidence=maybe(NUMBER),
    dispersion=maybe(NUMBER),
    **STATE["properties"],
)
SHIFT = record(at=WHOLE, started=maybe(WHOLE), before=INTERVAL, after=INTERVAL)
DETAIL = record(
    config={"type": "object"},
    arl=NUMBER,
    labels=listed(LABEL),
    rates={"type": "object", "additionalProperties": ref("Rate")},
    mix={"type": "object", "additionalProperties": maybe(NUMBER)},
    confusion=MATRIX,
    shift=maybe(SHIFT),
    counts={"type": "object", "additionalProperties": COUNT},
)
COLUMN: Schema = listed(LABEL)
BATCH_COLUMNS: dict[str, Schema] = {
    "y_true": COLUMN,
    "y_pred": COLUMN,
    "truth": COLUMN,
    "pred": COLUMN,
    "score": listed(NUMBER),
    "id": listed({"type": ["integer", "string"]}),
    "time": listed({"type": ["number", "string"]}),
    "by": {"type": "object", "additionalProperties": COLUMN},
}

SCHEMAS: dict[str, Schema] = {
    "Error": record(error=record(code=STRING, message=STRING, where={"type": "object"})),
    "Summary": SUMMARY,
    "Rate": RATE,
    "RateNow": STATE,
    "OpenDrift": OPEN,
    "Detail": {"allOf": [ref("Summary"), DETAIL]},
    "Finding": record(
        id=STRING,
        kind={"enum": [*get_args(Kind)]},
        monitor=STRING,
        segment=SEGMENT,
        at=WHOLE,
        drift=maybe(WHOLE),
        closes={"type": "boolean"},
        since=maybe(WHOLE),
        started=maybe(WHOLE),
        started_between=maybe(listed(WHOLE)),
        time=maybe(MOMENT),
        started_time=maybe(MOMENT),
        changes=listed(CHANGE),
        confusion=maybe(MATRIX),
        confusion_before=maybe(MATRIX),
        confusion_after=maybe(MATRIX),
        text=STRING,
        acknowledged=maybe(MOMENT),
        acknowledged_by=maybe(STRING),
        note=maybe(STRING),
    ),
    "Segment": record(
        segment=SEGMENT,
        status={"enum": ["stable", "warning", "drifted", "waiting"]},
        pinned={"type": "boolean"},
        evidence=maybe(SHARE),
        events=COUNT,
        rates={"type": "object", "additionalProperties": ref("RateNow")},
        discovery={"type": "boolean"},
        silenced_until=maybe(MOMENT),
    ),
    "Taken": record(accepted=COUNT, repeated=COUNT, rejected=COUNT, findings=listed(STRING)),
}

SEEN = record(("by", "note"), by=maybe(STRING), note=maybe(STRING))
STATUSES = {"200": "Done.", "201": "Made.", "204": "Gone."}
BODIES: dict[Key, Schema] = {
    "events": {
        "type": "object",
        "properties": BATCH_COLUMNS,
        "required": ["y_true", "y_pred"],
        "description": "Pairs. `truth` and `pred` are other names of `y_true` and `y_pred`; `score` may stand for "
        "`y_pred`. With an `id` a pair counts once.",
    },
    "predictions": {"type": "object", "properties": BATCH_COLUMNS, "required": ["id", "y_pred"]},
    "labels": {"type": "object", "properties": BATCH_COLUMNS, "required": ["id", "y_true"]},
    ("PUT", ONE): ref("MonitorConfig"),
    ("PATCH", ONE): {"type": "object", "description": "Fields of MonitorConfig; null sets the default."},
    ("PUT", f"{ONE}/silence"): record(("segment",), until=MOMENT, segment=SEGMENT),
    ("POST", f"{ONE}/drifts/{{id}}/acknowledge"): SEEN,
    ("POST", f"{ONE}/drifts/{{id}}/accept"): SEEN,
}


def _query(name: str, schema: Schema, told: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": told}


def _number(name: str, least: int, most: int, default: int) -> Schema:
    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return _query(name, schema, f"From {least} to {most:,}.")


SEGMENT_QUERY = _query("segment", STRING, 'The values of a segment in the order of `by`, as JSON: ["FR"].')
LIMIT = _number("limit", 1, 1_000, 100)
PARAMETERS: dict[Key, list[Schema]] = {
    "ingest": [
        _query(
            "bad",
            {"enum": [*BAD], "default": "reject"},
            "A bad row rejects the request, is left out and counted, or is left out and kept with its reason.",
        ),
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "maxLength": 200},
            "description": "The same key with the same body counts once, however often it is sent.",
        },
    ],
    ("GET", f"{ONE}/drifts"): [
        LIMIT,
        _query("before", STRING, "The id of a finding: older ones than this."),
        _query("of", {"enum": ["all", "overall"]}, "Those of segments too, or the overall ones alone."),
        SEGMENT_QUERY,
    ],
    ("GET", f"{ONE}/segments"): [LIMIT, _number("offset", 0, 1 << 31, 0), SEGMENT_QUERY],
    ("GET", f"{ONE}/segments/series"): [SEGMENT_QUERY],
    ("DELETE", f"{ONE}/silence"): [SEGMENT_QUERY],
    ("GET", f"{ONE}/series"): [
        _number("points", 2, 2_000, 600),
        _number("seconds", 1, 1 << 31, 1 << 31),
    ],
    ("GET", f"{ONE}/rejected"): [LIMIT],
    ("GET", "/api/stream"): [
        _query("monitor", STRING, "Only what is about this monitor."),
        {"name": "Last-Event-ID", "in": "header", "required": False, "schema": STRING},
    ],
}

NUMBERS: Schema = listed(maybe(NUMBER))
SPARK = maybe(record(time=NUMBERS, value=NUMBERS))
ANSWERS: dict[Key, list[tuple[str, str | None, Schema]]] = {
    "ingest": [("200", JSON, ref("Taken"))],
    ("GET", "/api/monitors"): [
        (
            "200",
            JSON,
            record(
                monitors=listed({"allOf": [ref("Summary"), record(spark=SPARK)]}),
                damaged=listed(record(name=STRING, problem=STRING)),
            ),
        )
    ],
    ("GET", ONE): [("200", JSON, ref("Detail"))],
    ("PUT", ONE): [("200", JSON, ref("Detail")), ("201", JSON, ref("Detail"))],
    ("PATCH", ONE): [("200", JSON, ref("Detail"))],
    ("DELETE", ONE): [("204", None, {})],
    ("GET", f"{ONE}/drifts"): [("200", JSON, record(drifts=listed(ref("Finding"))))],
    ("GET", f"{ONE}/drifts/{{id}}"): [("200", JSON, ref("Finding"))],
    ("GET", f"{ONE}/drifts/{{id}}/examples"): [
        ("200", JSON, record(ids=listed({"type": ["integer", "number", "string"]}), complete={"type": "boolean"}))
    ],
    ("POST", f"{ONE}/drifts/{{id}}/acknowledge"): [("200", JSON, ref("Finding"))],
    ("POST", f"{ONE}/drifts/{{id}}/accept"): [("200", JSON, ref("Finding"))],
    ("GET", f"{ONE}/segments/series"): [
        ("200", JSON, record(segment=SEGMENT, time=NUMBERS, rates={"type": "object"})),
    ],
    ("GET", f"{ONE}/segments"): [("200", JSON, record(segments=listed(ref("Segment")), total=COUNT))],
    ("GET", f"{ONE}/series"): [
        (
            "200",
            JSON,
            record(time=NUMBERS, event=NUMBERS, rates={"type": "object"}, evidence=NUMBERS, mix=NUMBERS),
        )
    ],
    ("GET", f"{ONE}/rejected"): [("200", JSON, record(rejected=listed(record(time=maybe(MOMENT), problem=STRING))))],
    ("PUT", f"{ONE}/silence"): [("200", JSON, ref("Summary"))],
    ("DELETE", f"{ONE}/silence"): [("200", JSON, ref("Summary"))],
    ("POST", f"{ONE}/test-alert"): [
        (
            "200",
            JSON,
            record(
                id=STRING,
                channels=listed(record(channel=STRING, delivered={"type": "boolean"}, problem=maybe(STRING))),
            ),
        )
    ],
    ("GET", "/api/stream"): [("200", "text/event-stream", STRING)],
    ("GET", "/healthz"): [("200", TEXT, STRING)],
    ("GET", "/readyz"): [("200", TEXT, STRING)],
    ("GET", "/metrics"): [("200", TEXT, STRING)],
    ("GET", "/openapi.json"): [("200", JSON, {"type": "object"})],
}
