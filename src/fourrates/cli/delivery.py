"""Channels for the alerts of `watch`, and delivery of the remaining ones at the end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fourrates.cli import UNDELIVERED
from fourrates.cli import options as opt

SECONDS = 10.0  # to deliver remaining alerts at the end

if TYPE_CHECKING:
    from fourrates.alerts import Channel, Spool


def channels(addresses: Sequence[str]) -> list[Channel]:
    """The channels of the addresses; webhooks are signed if FOURRATES_WEBHOOK_SECRET is set."""
    if not addresses:
        return []
    from fourrates.alerts import channel_of  # only if there are channels

    secret = os.environ.get("FOURRATES_WEBHOOK_SECRET")
    return [channel_of(address, secret, commands=True) for address in addresses]


def open_spool(channels: list[Channel], state: Path | None, file: str) -> Spool | None:
    """The spool next to the state, if there are channels; alerts it holds for other channels are reported."""
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
    """Try for some seconds to deliver the rest, report failures, and return the exit status."""
    dropped, grace = spool.dropped, float(os.environ.get("FOURRATES_ALERT_SECONDS", SECONDS))
    with suppress(KeyboardInterrupt):  # a second Ctrl-C: report the rest all the same
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
