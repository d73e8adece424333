"""Where `watch` sends its alerts, and what becomes of those that are left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fourrates.cli import UNDELIVERED
from fourrates.cli import options as opt
from fourrates.io import InputError

if TYPE_CHECKING:
    from fourrates.alerts import Channel, Spool


def channels(
    command: str | None, url: str | None, header: Sequence[str], secret_file: Path | None, notify: Sequence[str]
) -> list[Channel]:
    """The channels that the options name."""
    found: list[Channel] = []
    if command is None and url is None and not notify:
        return found
    from fourrates import alerts  # only where there is somebody to tell

    if command is not None:
        found.append(alerts.Command(command))
    if url is not None:
        pairs = [one.partition(":") for one in header]
        if wrong := next((name for name, colon, _ in pairs if not colon), None):
            raise InputError(f"--header {wrong!r} is not written like 'Name: value'")
        secret = os.environ.get("FOURRATES_WEBHOOK_SECRET")
        if secret_file is not None:
            secret = secret_file.read_text().strip()
        headers = {name.strip(): value.strip() for name, _, value in pairs}
        found.append(alerts.Webhook(url, secret=secret, headers=headers))
    if notify:
        found.append(alerts.Apprise(notify))
    return found


def open_spool(channels: list[Channel], path: Path | None, state: Path | None, file: str) -> Spool | None:
    """The spool, where there is somebody to tell; what waits in it for others is said."""
    if not channels:
        return None
    from fourrates.alerts import Spool
    from fourrates.disk_queue import default_path

    if path is None:
        path = Path(f"{state}.alerts") if state is not None else Path(default_path("watch", os.getcwd(), file))
    spool = Spool(path, channels, tell=opt.say)
    if others := spool.stranded():
        names = ", ".join(dict.fromkeys(entry.channel for entry in others))
        opt.say(f"{path}: {opt.several(len(others), 'alert')} wait for channels that are not given now: {names}")
    return spool


def deliver_rest(spool: Spool, grace: float) -> int:
    """Deliver what is left, as long as the grace lasts, and name what cannot be; the exit status."""
    dropped = spool.dropped
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
