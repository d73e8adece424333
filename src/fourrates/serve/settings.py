"""The settings a server starts with."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from fourrates.events.rows import InputError

Whole = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
PREFIX = "FOURRATES_SERVE_"
VARIABLES = [
    "keep_events",
    "snapshot_bytes",
    "alert_interval",
    "public_url",
    "runbook_url",
    "otlp",
    "origins",
    "log_level",
]


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path  # the folder with the database, the spool of alerts and the lock; created if missing
    host: str = "127.0.0.1"
    port: int = 8421
    database: str | None = None  # postgresql://...; otherwise a SQLite file in the folder
    max_body: int = 64 << 20  # bytes, also after it was unpacked
    max_rows: int = 1_000_000  # in one body
    max_monitors: int = 1_000
    max_segments: int = 10_000  # in each monitor
    max_waiting: int = 10_000_000  # predictions of a monitor that wait for their label, and ids that are remembered
    keep_events: Whole = 50_000  # latest events of a monitor kept in the journal, so that a drift can name its examples
    keep_keys: float = 3 * 86_400.0  # seconds for which an idempotency key is remembered
    snapshot_bytes: Positive = 32 << 20  # of the journal (and twice the last snapshot) after which a monitor is saved
    group_size: int = 512  # requests in one transaction
    alert_interval: Annotated[float, msgspec.Meta(ge=0)] = 60.0  # seconds between two notifications about a monitor
    public_url: str | None = None  # of the page as people reach it, for the links of alerts
    runbook_url: str | None = None  # alerts link to it; {monitor} in it is the name of the monitor
    token_required: bool | None = None  # None for "unless `host` is a loopback address"
    origins: tuple[str, ...] = ()  # that a browser may call from (CORS)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    otlp: str | None = None  # the address of a collector of OpenTelemetry, http://127.0.0.1:4318
    topics: tuple[str, ...] = ()  # kafka://broker:9092/topic?monitor=name, read besides requests

    @property
    def needs_token(self) -> bool:
        return not self.is_loopback if self.token_required is None else self.token_required

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that are in the environment, by name; an InputError names a wrong one."""
    found: dict[str, Any] = {}
    kinds = get_type_hints(Settings, include_extras=True)
    for name in VARIABLES:
        if text := environment.get(PREFIX + name.upper()):
            try:
                found[name] = msgspec.convert(text.split() if name == "origins" else text, kinds[name], strict=False)
            except msgspec.ValidationError as error:
                raise InputError(f"{PREFIX}{name.upper()}={text!r:.200}: {error}") from None
    return found
