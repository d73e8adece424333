"""CloudEvents, as KServe and Seldon log the requests and responses of a model.

The type shows whether an event is a request, a response or Seldon's feedback; its id (Seldon: ``requestid``) pairs
request and response. A response holds predictions, feedback holds labels. Segments and your own ids are in the request,
which may arrive before or after its response, so the first is kept until the other arrives.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections import OrderedDict
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from fourrates.events.payloads import columns_of, predictions, row_ids
from fourrates.events.rows import InputError
from fourrates.serve.batch import KINDS
from fourrates.serve.bodies import Body, object_decoder
from fourrates.serve.errors import ApiError
from fourrates.serve.ingest import Ingest, Policy
from fourrates.serve.registry import Live, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.writer import Job, Writer

log = logging.getLogger("fourrates.serve")
STRUCTURED = "application/cloudevents+json"
REQUEST, RESPONSE, FEEDBACK = TYPES = ".inference.request", ".inference.response", ".feedback"  # how types end
ATTRIBUTES = "type", "id", "requestid", "time"
MOST_VALUES = 1 << 20  # in a payload
MOST_BYTES = 1 << 26  # of requests and responses that are kept
ENTRY = 600  # bytes that each of them takes besides
LONGEST_ID = 200


class Event(msgspec.Struct):
    """An event's attributes, from headers or JSON fields, and its payload."""

    type: str
    id: str
    requestid: str | None = None
    time: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"")
    data_base64: str | None = None


class Half(msgspec.Struct):
    """The part needed of a request (columns), or of a response (a column, and values common to all rows)."""

    columns: dict[str, list[Any]]
    id: str = ""
    whole: dict[str, str] = {}


class Halves:
    """The latest requests and responses that fit into :data:`MOST_BYTES`."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()  # large bodies are read in a thread

    def keep(self, key: tuple[str, str, str], half: Half) -> None:
        body = msgspec.json.encode(half)
        with self._lock:
            self._size += len(body) - len(self._kept.pop(key, b""))
            self._kept[key] = body
            while self._size + ENTRY * len(self._kept) > MOST_BYTES:
                gone, body = self._kept.popitem(last=False)
                self._size -= len(body)
                log.debug("%s of request %s is no longer kept", *gone[1:])

    def find(self, key: tuple[str, str, str]) -> Half | None:
        with self._lock:
            body = self._kept.get(key)  # it stays, as a sender may repeat itself
        return None if body is None else msgspec.json.decode(body, type=Half)


class CloudEvents(Ingest):
    """What takes the events of model servers, too."""

    def __init__(self, registry: Registry, writer: Writer, settings: Settings) -> None:
        super().__init__(registry, writer, settings)
        self._halves = Halves()

    async def cloudevents(
        self, request: Request, *, id: str = "", pred: str = "", score: str = "", bad: Policy = "keep"
    ) -> Response:
        """Take an event of a model server; the empty answer means that it is on disk, or waits for its other half."""

        def read(body: bytes) -> Job | None:
            live = self.registry.get(request.path_params["name"])
            event = _event(request.headers, self.unpacked(request, body))
            try:
                made = self.columns(live, event, id, score or pred, "score" if score else "")
            except InputError as error:
                raise ApiError(422, "bad_event", str(error)) from None
            return None if made is None else self.job(live, *made, bad)

        await self.take(request, read)
        return Response()  # brokers take any other answer for an event that is damaged

    def columns(
        self, live: Live, event: Event, id_column: str = "", output: str = "", role: str = ""
    ) -> tuple[int, Body] | None:
        """The event's kind and columns; None while its other half is missing.

        `id_column` is the input with the ids, `output` that with the predictions, as `role`; empty for their defaults.
        """
        kind = next((ending for ending in TYPES if event.type.endswith(ending)), None)
        if kind is None:
            raise InputError(f"{event.type!r:.200} is not the type of a request, a response or feedback")
        id = event.requestid or event.id
        if not 0 < len(id) <= LONGEST_ID:
            raise InputError(f"the id of an event has up to {LONGEST_ID} characters, this one has {len(id)}")
        labels, wanted = live.plan.encoder.labels, [*live.plan.by, *filter(None, [id_column])]
        if kind == REQUEST and not wanted:
            return None
        payload = self._payload(event)
        if kind == FEEDBACK:
            _, truth = predictions(columns_of(payload.get("truth")), None, labels)
            return KINDS["labels"], Body(truth=truth, id=row_ids(id, len(truth)))
        columns = columns_of(payload)
        if kind == REQUEST:
            half = Half({name: columns[name] for name in wanted if name in columns})
        else:
            known, values = predictions(columns, output or None, labels)
            own, version = payload.get("id"), payload.get("model_version")
            whole = {"time": event.time} if event.time is not None else {}
            whole |= {"version": version} if isinstance(version, str) else {}
            half = Half({role or known: values}, own if isinstance(own, str) and own else id, whole)
        other: Half | None = Half({})
        if wanted:
            self._halves.keep((live.row.uid, kind, id), half)
            other = self._halves.find((live.row.uid, RESPONSE if kind == REQUEST else REQUEST, id))
        if other is None:
            return None
        request, response = (half, other) if kind == REQUEST else (other, half)
        return KINDS["predictions"], _joined(request, response, live.plan.by, id_column)

    def _payload(self, event: Event) -> dict[str, Any]:
        body = bytes(event.data)
        # Values are counted before they are built, since an empty list of 3 bytes takes 64 in memory.
        if body.count(b",") > MOST_VALUES or body.count(b"{") + body.count(b"[") > self.limits.rows + 100:
            raise ApiError(413, "too_large", f"a payload of more than {MOST_VALUES:,} values", {"limit": MOST_VALUES})
        try:
            return object_decoder(body).decode(body)
        except (ValueError, RecursionError) as error:
            raise ApiError(400, "bad_json", f"the payload is no JSON object: {str(error)[:300]}") from None


def _event(headers: Headers, body: bytes) -> Event:
    """An event in either form, with attributes in headers and the payload as body, or all in one object."""
    try:
        if headers.get("content-type", "").partition(";")[0].strip().lower() == STRUCTURED:
            event = msgspec.json.decode(body, type=Event)
            if event.data_base64 is not None:
                event.data = msgspec.Raw(base64.b64decode(event.data_base64, validate=True))
            return event
        given = {name: unquote(headers[f"ce-{name}"]) for name in ATTRIBUTES if f"ce-{name}" in headers}
        event = msgspec.convert(given, Event)
        event.data = msgspec.Raw(body)
        return event
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "bad_event", f"this is no CloudEvent: {str(error)[:300]}") from None


def _joined(request: Half, response: Half, by: list[str], id_column: str) -> Body:
    """Predictions with the segments and ids of their request."""
    ((known, values),) = response.columns.items()
    if id_column and id_column not in request.columns:
        raise InputError(f"the request has no {id_column:.80}")
    ids = request.columns[id_column] if id_column else row_ids(response.id, len(values))
    whole = {name: [value] * len(values) for name, value in response.whole.items()}
    segments = {name: request.columns[name] for name in by if name in request.columns}
    return Body(**{known: values}, **whole, id=ids, by=segments)
