"""Where the alerts of monitors go: addresses to channels, and one spool on disk for all of them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fourrates.alerts import Channel, Spool, channel_of

log = logging.getLogger("fourrates.serve.alerts")

FILE = "alerts.spool"


def check_channels(addresses: Iterable[str]) -> None:
    """Raise a ValueError unless all of these are addresses of channels."""
    for address in addresses:
        channel_of(address)


class Channels:
    """The channels of a server; alerts for any of them wait in one file.

    Parameters
    ----------
    data : path
        The folder of the server.
    secret : str or bytes, optional
        Signs webhooks; by default the variable FOURRATES_WEBHOOK_SECRET, if it is set.
    everywhere : sequence of Channel
        Channels that get the alerts of every monitor, such as a command named by whoever started the server.
    """

    def __init__(
        self, data: str | os.PathLike[str], secret: str | bytes | None = None, everywhere: Sequence[Channel] = ()
    ) -> None:
        self.path = Path(data) / FILE
        self._secret = secret or os.environ.get("FOURRATES_WEBHOOK_SECRET") or None
        self._spools: dict[str, Spool] = {}
        self._lock = threading.Lock()
        self._everywhere = [self._spool(channel) for channel in everywhere]

    def open(self, addresses: Iterable[str]) -> list[Spool]:
        """The spools of these addresses, each with its one channel; what waits in them begins to be delivered."""
        found = list(self._everywhere)
        with self._lock:
            for address in dict.fromkeys(addresses):
                if address not in self._spools:
                    try:
                        self._spools[address] = self._spool(channel_of(address, self._secret))
                    except ValueError as error:
                        log.error("no alerts to a channel: %s", error)
                        continue
                found.append(self._spools[address])
        return found

    def put(self, addresses: Iterable[str], payload: Mapping[str, Any]) -> None:
        """Put an alert on the disk for each of these addresses; one that is there already is not put twice."""
        for spool in self.open(addresses):
            spool.put(payload)

    def test(self, addresses: Iterable[str], payload: Mapping[str, Any], patience: float = 5.0) -> list[dict[str, Any]]:
        """Put an alert, wait a moment, and tell for each channel whether it arrived, or what the problem is."""
        spools = self.open(addresses)
        for spool in spools:
            spool.put(payload)
        end = time.monotonic() + patience
        found = []
        for spool in spools:
            waiting = {entry.id: entry for entry in spool.pending()}
            while payload["id"] in waiting and time.monotonic() < end:
                time.sleep(0.05)
                waiting = {entry.id: entry for entry in spool.pending()}
            left = waiting.get(payload["id"])
            (name,) = spool.channels
            found.append(
                {"channel": name, "delivered": left is None, "problem": left.problem or None if left else None}
            )
        return found

    @property
    def waiting(self) -> int:
        """Alerts that wait to be delivered."""
        with self._lock:
            spools = [*self._everywhere, *self._spools.values()]
        return sum(len(spool.pending()) for spool in spools)

    def close(self, deadline: float = 5.0) -> None:
        """Deliver what can be delivered within this number of seconds; the rest stays in the file."""
        end = time.monotonic() + deadline
        with self._lock:
            spools = [*self._everywhere, *self._spools.values()]
        for spool in spools:
            spool.close(max(0.0, end - time.monotonic()))

    def _spool(self, channel: Channel) -> Spool:
        return Spool(self.path, [channel], tell=lambda sentence: log.warning("%s", sentence))
