"""What a server is started with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server."""

    data: Path  # the folder with the database, the spool of alerts and the lock; made if it is not there
    host: str = "127.0.0.1"
    port: int = 8421
    database: str | None = None  # postgresql://...; otherwise a SQLite file in the folder
    max_body: int = 64 << 20  # bytes, also after it was unpacked
    max_rows: int = 1_000_000  # in one body
    max_monitors: int = 1_000
    max_segments: int = 10_000  # in each monitor
    max_waiting: int = 10_000_000  # predictions of a monitor that wait for their label, and ids that are remembered
    keep_events: int = 50_000  # latest events of a monitor kept in the journal, so that a drift can name its examples
    keep_keys: float = 3 * 86_400.0  # seconds for which an idempotency key is remembered
    snapshot_bytes: int = 32 << 20  # a monitor is saved when its journal is larger than this and twice its snapshot
    group_size: int = 512  # requests in one transaction
    alert_interval: float = 60.0  # seconds between two notifications about a monitor
    public_url: str | None = None  # of the page as people reach it, for the links of alerts
    runbook_url: str | None = None  # alerts link to it; {monitor} in it is the name of the monitor
    token_required: bool | None = None  # None: unless `host` is a loopback address
    origins: tuple[str, ...] = ()  # that a browser may call from (CORS)
    topics: tuple[str, ...] = ()  # kafka://broker:9092/topic?monitor=name, read besides requests

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return not self.is_loopback if self.token_required is None else self.token_required

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"
