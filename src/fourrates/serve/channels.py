"""Where the alerts of monitors go: addresses to channels, and one spool on disk for all of them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fourrates.alerts import Spool, channel_of

log = logging.getLogger("fourrates.serve.alerts")

FILE = "alerts.spool"


def check_channels(addresses: Iterable[str]) -> None:
    """Raise a ValueError unless all of these are addresses of channels."""
    for address in addresses:
        channel_of(address)


class Channels:
    """The channels of a server; alerts for any of them wait in one file, in the folder of the server.

    Webhooks are signed if the variable FOURRATES_WEBHOOK_SECRET is set.
    """

    def __init__(self, data: str | os.PathLike[str]) -> None:
        self.path = Path(data) / FILE
        self._secret = os.environ.get("FOURRATES_WEBHOOK_SECRET") or None
        self._spools: dict[str, Spool] = {}
        self._lock = threading.Lock()

    def open(self, addresses: Iterable[str]) -> list[Spool]:
        """The spools of these addresses, each with its one channel; what waits in them begins to be delivered."""
        spools = []
        with self._lock:
            for address in dict.fromkeys(addresses):
                if address not in self._spools:
                    try:
                        channel = channel_of(address, self._secret)
                    except ValueError as error:
                        log.error("no alerts to a channel: %s", error)
                        continue
                    self._spools[address] = Spool(self.path, [channel], tell=lambda text: log.warning("%s", text))
                spools.append(self._spools[address])
        return spools

    def put(self, addresses: Iterable[str], payload: Mapping[str, Any]) -> None:
        """Put an alert on the disk for each of these addresses; one that is there already is not put twice."""
        for spool in self.open(addresses):
            spool.put(payload)

    def test(self, addresses: Iterable[str], payload: Mapping[str, Any], patience: float = 5.0) -> list[dict[str, Any]]:
        """Put an alert, wait a moment, and tell for each channel whether it arrived, or what the problem is."""
        self.put(addresses, payload)
        end = time.monotonic() + patience
        results = []
        for spool in self.open(addresses):
            (name,) = spool.channels
            while (waits := _waits(spool, payload["id"])) is not None and time.monotonic() < end:
                time.sleep(0.05)
            results.append({"channel": name, "delivered": waits is None, "problem": waits or None})
        return results

    def close(self, deadline: float = 5.0) -> None:
        """Deliver what can be delivered within this number of seconds; the rest stays in the file."""
        end = time.monotonic() + deadline
        with self._lock:
            spools = [*self._spools.values()]
        for spool in spools:
            spool.close(max(0.0, end - time.monotonic()))


def _waits(spool: Spool, id: str) -> str | None:
    """The problem with an alert that waits, empty before an attempt failed; None if it does not wait any more."""
    return next((entry.problem for entry in spool.pending() if entry.id == id), None)
