"""Where `watch` sends its alerts, and what becomes of those that are left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fourrates.cli import UNDELIVERED
from fourrates.cli import options as opt

SECONDS = 10.0  # to deliver what is left at the end

if TYPE_CHECKING:
    from fourrates.alerts import Channel, Spool


def channels(addresses: Sequence[str]) -> list[Channel]:
    """The channels of the addresses; webhooks are signed if FOURRATES_WEBHOOK_SECRET is set."""
    if not addresses:
        return []
    from fourrates.alerts import channel_of  # only where there is somebody to tell

    secret = os.environ.get("FOURRATES_WEBHOOK_SECRET")
    return [channel_of(address, secret, commands=True) for address in addresses]


def open_spool(channels: list[Channel], state: Path | None, file: str) -> Spool | None:
    """The spool, next to the state, where there is somebody to tell; what waits in it for others is said."""
    if not channels:
        return None
    from fourrates.alerts import Spool
    from fourrates.disk_queue import default_path

    path = Path(f"{state}.alerts") if state is not None else Path(default_path("watch", os.getcwd(), file))
    spool = Spool(path, channels, tell=opt.say)
    if others := spool.stranded():
        names = ", ".join(dict.fromkeys(entry.channel for entry in others))
        opt.say(f"{path}: {opt.several(len(others), 'alert')} wait for channels that are not given now: {names}")
    return spool


def deliver_rest(spool: Spool) -> int:
    """Deliver what is left, for some seconds, and name what cannot be; the exit status."""
    dropped, grace = spool.dropped, float(os.environ.get("FOURRATES_ALERT_SECONDS", SECONDS))
    with suppress(KeyboardInterrupt):  # asked a second time: what is left is named all the same
        spool.close(grace)
    if dropped:
        opt.say(f"{opt.several(dropped, 'alert')} dropped because the spool was full")
    if not spool.left:
        return 0
    named = "; ".join(f"{entry.id} by {entry.channel} ({entry.problem or 'not tried'})" for entry in spool.left[:10])
    more = f"; and {len(spool.left) - 10:,} more" if len(spool.left) > 10 else ""
    opt.say(
        f"{opt.several(len(spool.left), 'alert')} undelivered, kept in {spool.path} for the next run: {named}{more}"
    )
    return UNDELIVERED
