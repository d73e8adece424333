"""What `watch` gives: findings to a view, to alerts and to the summary at the end; rejected lines to `--bad-rows`.

A view shows records of findings, warnings and shifts: JSON lines, or a :class:`~fourrates.cli.picture.Picture`.
"""

from __future__ import annotations

import json as js
import os
import sys
import time as clock
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourrates.cli import UNDELIVERED
from fourrates.cli import options as opt
from fourrates.cli.lines import SHIFTS, Lines, in_a_line

if TYPE_CHECKING:
    from fourrates.alerts import Channel, Spool
    from fourrates.cli.picture import Picture
    from fourrates.watch import Now

SECONDS = 10.0  # to deliver remaining alerts at the end
LAST = 10  # findings in a summary
SHOWN = 10_000  # bytes saved of a rejected line


def view_of(watch: Any, single: bool, name: str, json: bool) -> Lines | Picture:
    """A picture on a terminal, unless JSON is asked for; `watch` is a Watch, or a Monitor of a topic."""
    if json or not sys.stdout.isatty():
        return Lines()
    from fourrates.cli.picture import Picture  # rich is slow to import

    return Picture(watch, single, name)


class Delivery:
    """Hands each finding to the view and, if it is a drift or its end, to the spool of alerts; counts them."""

    def __init__(self, view: Lines | Picture, spool: Spool | None) -> None:
        self.view, self.spool = view, spool
        self.warned = 0
        self._kinds: Counter[str] = Counter()
        self._last: deque[str] = deque(maxlen=LAST)
        self._began = clock.monotonic()

    def report(self, record: dict[str, Any]) -> None:
        self.view.show(record)
        if record["kind"] in SHIFTS:
            return
        if self.spool is not None and (record["kind"] == "drift" or record["closes"]):
            self.spool.put(record)
        self._kinds[record["kind"]] += 1
        self._last.append(in_a_line(record))

    def summary(self, events: int, now: Now, aside: str) -> None:
        """Report the status, the events and the findings; `aside` is what else there was."""
        kinds = ("drift", *(kind for kind in ("withdrawal", "recovery") if self._kinds[kind]))
        counts = ", ".join(
            [*(opt.several(self._kinds[kind], kind) for kind in kinds), opt.several(self.warned, "warning")]
        )
        if now.events:
            opt.say(f"now: {now}")
        opt.say(f"{opt.several(events, 'event')} in {clock.monotonic() - self._began:,.1f} s{aside}: {counts}")
        for text in self._last:
            opt.say(f"  {text}")

    def finish(self) -> int:
        """Try for some seconds to deliver the rest, report failures, and return the exit status."""
        if (spool := self.spool) is None:
            return 0
        dropped, grace = spool.dropped, float(os.environ.get("FOURRATES_ALERT_SECONDS", SECONDS))
        with suppress(KeyboardInterrupt):  # a second Ctrl-C: report the rest all the same
            spool.close(grace)
        if dropped:
            opt.say(f"{opt.several(dropped, 'alert')} dropped because the spool was full")
        if not spool.left:
            return 0
        first = (f"{entry.id} by {entry.channel} ({entry.problem or 'not tried'})" for entry in spool.left[:10])
        more = f"; and {len(spool.left) - 10:,} more" if len(spool.left) > 10 else ""
        alerts = opt.several(len(spool.left), "alert")
        opt.say(f"{alerts} undelivered, kept in {spool.path} for the next run: {'; '.join(first)}{more}")
        return UNDELIVERED


def channels(addresses: Sequence[str]) -> list[Channel]:
    if not addresses:
        return []
    from fourrates.alerts import channel_of  # only if there are channels

    return [channel_of(address, commands=True) for address in addresses]


def open_spool(channels: list[Channel], state: Path | None, file: str) -> Spool | None:
    """The spool next to the state, if there are channels; alerts it holds for other channels are reported."""
    if not channels:
        return None
    from fourrates.alerts import Spool
    from fourrates.disk_queue import default_path

    path = Path(f"{state}.alerts") if state is not None else Path(default_path("watch", os.getcwd(), file))
    spool = Spool(path, channels, on_message=opt.say)
    if others := spool.stranded():
        names = ", ".join(dict.fromkeys(entry.channel for entry in others))
        opt.say(f"{path}: {opt.several(len(others), 'alert')} wait for channels that are not given now: {names}")
    return spool


class BadRows:
    """Appends rejected lines to a file, as JSON with place and problem.

    `count` lines were rejected before, and the file had `size` bytes then. Anything beyond that is from a process that
    ended before it saved its progress; those lines are not written twice.
    """

    def __init__(self, path: Path, count: int = 0, size: int | None = None) -> None:
        self.count = count
        self._file = open(path, "a+b")  # noqa: SIM115 (closed by close)
        end = self._file.seek(0, os.SEEK_END)
        self._again: Counter[bytes] = Counter()
        if size is not None and size < end:
            self._file.seek(size)
            self._again.update(self._file.read().splitlines())
        if end:
            self._file.seek(end - 1)
            if self._file.read(1) != b"\n":  # an incomplete line; begin a new one
                self._file.write(b"\n")

    def refuse(self, source: str, line: int, text: bytes, problem: str) -> None:
        self.count += 1
        record = {"source": source, "line": line, "problem": problem, "text": text[:SHOWN].decode("utf-8", "replace")}
        row = js.dumps(record).encode()
        if self._again[row] > 0:
            self._again[row] -= 1
        else:
            self._file.write(row + b"\n")

    def flush(self) -> int:
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        self._file.close()
