"""What a server is started with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server.

    Attributes
    ----------
    data : Path
        The folder with the database, the spool of alerts and the lock; made if it is not there.
    host, port
        Where it listens.
    database : str, optional
        ``postgresql://...`` for PostgreSQL; otherwise a SQLite file in the folder.
    max_body : int
        Bytes of a body, also after it was unpacked.
    max_rows : int
        Rows in one body.
    max_monitors, max_segments : int
        Monitors there may be, and segments in each.
    max_waiting : int
        Predictions of a monitor that wait for their label, and ids that are remembered.
    keep_events : int
        The latest events of a monitor whose ids and outcome stay in the journal, so that a drift can name its examples.
    keep_keys : float
        Seconds for which an idempotency key is remembered.
    snapshot_bytes : int
        A monitor is saved when its journal since the last snapshot is larger than this and than twice the snapshot.
    group_size : int
        Requests in one transaction, at most.
    alert_interval : float
        Seconds between two notifications about a monitor; what happens in between is told together.
    public_url, runbook_url : str, optional
        Addresses that alerts link to: of the page as people reach it, and of a runbook, in which ``{monitor}`` is the
        name of the monitor.
    token_required : bool or None
        Whether a token is needed; None means unless `host` is a loopback address.
    origins : tuple of str
        Origins that a browser may call from (CORS); none by default.
    topics : tuple of str
        Topics that events come from besides requests, as ``kafka://broker:9092/topic?monitor=name``.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8421
    database: str | None = None
    max_body: int = 64 << 20
    max_rows: int = 1_000_000
    max_monitors: int = 1_000
    max_segments: int = 10_000
    max_waiting: int = 10_000_000
    keep_events: int = 50_000
    keep_keys: float = 3 * 86_400.0
    snapshot_bytes: int = 32 << 20
    group_size: int = 512
    alert_interval: float = 60.0
    public_url: str | None = None
    runbook_url: str | None = None
    token_required: bool | None = None
    origins: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

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
