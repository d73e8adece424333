"""``fourrates watch kafka://broker/topic``: watch a Kafka topic."""

from __future__ import annotations

import sys
import time as clock
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fourrates.cli import options as opt
from fourrates.cli.bad_rows import BadRows
from fourrates.cli.delivery import deliver_rest, open_spool
from fourrates.cli.errors import checked
from fourrates.cli.picture import FRAME, Lines, Picture, View
from fourrates.cli.watching import until_asked
from fourrates.detectors import Detector
from fourrates.detectors.base import RecordDetector
from fourrates.engines.kafka import Address, Monitor
from fourrates.engines.kafka.chunk import RejectedMessage
from fourrates.io import InputError, read

if TYPE_CHECKING:
    from fourrates.alerts import Channel, Spool

NAMED = 20  # bad messages reported if they are not saved


def watch_topic(
    url: str,
    data: opt.Data,
    chosen: opt.Chosen,
    limits: opt.Limits,
    channels: Sequence[Channel],
    *,
    json: bool,
    shifts: bool,
    bad_rows: Path | None,
    state: Path | None,
) -> int:
    """Watch a topic until asked to stop; the exit status."""
    address = Address.parse(url)
    given = click.get_current_context().get_parameter_source("bad") is not ParameterSource.DEFAULT
    bad = data.bad if given else "keep"  # a topic cannot be repaired: one bad message must not end the watch
    made = _detector(data, chosen)
    with ExitStack() as stack:
        aside = None
        if bad_rows is not None:
            aside = BadRows(bad_rows)
            stack.callback(aside.close)
        told = _Told(open_spool([*channels], state, url), aside, address.dead_letter is not None)
        with checked():
            monitor = Monitor(
                address,
                made,
                state=state,
                truth=data.truth,
                pred=data.pred,
                score=data.score,
                time=data.time,
                by=data.by,
                threshold=data.threshold,
                bad=bad,
                max_segments=limits.max_segments,
                max_state=limits.max_state,
                found=told.finding,
                shifted=told.shift if shifts else None,
                refuse=told.refuse,
                say=opt.say,
            )
        told.view = Picture(monitor, False, str(address)) if sys.stdout.isatty() and not json else Lines()
        began, status = clock.monotonic(), 0
        try:
            with told.view, until_asked() as asked, monitor:
                while not asked():
                    monitor.step(FRAME)
                    told.view.tick()
        finally:
            if told.spool is not None:
                status = deliver_rest(told.spool)
    _summarise(monitor, clock.monotonic() - began, told)
    return status


class _Told:
    """Sends findings to a view, to the spool of alerts, and bad rows to their file."""

    def __init__(self, spool: Spool | None, aside: BadRows | None, dead_letters: bool) -> None:
        self.view: View = Lines()
        self.spool, self.aside, self.dead_letters = spool, aside, dead_letters
        self.findings: list[str] = []  # the last ones, for the summary
        self.kinds: Counter[str] = Counter()
        self.named = 0

    def finding(self, record: dict[str, Any]) -> None:
        if self.spool is not None and (record["kind"] == "drift" or record["closes"]):
            self.spool.put(record)
        self.view.drift(record)
        self.kinds[record["kind"]] += 1
        self.findings = [*self.findings[-9:], record["text"]]

    def shift(self, record: dict[str, Any]) -> None:
        self.view.shift(record)

    def refuse(self, source: str, one: RejectedMessage) -> None:
        if self.aside is not None:
            self.aside.refuse(source, one.offset, one.value or b"", one.problem)
            self.aside.flush()
        elif not self.dead_letters and self.named < NAMED:
            self.named += 1
            more = "; further ones are counted only" if self.named == NAMED else ""
            opt.say(f"{one.problem}{more}")


def _detector(data: opt.Data, chosen: opt.Chosen) -> RecordDetector:
    classes = opt.labels_of(data.labels) or [0, 1]
    with checked():
        events = read({}, labels=classes, positive=opt.label_of(data.positive, classes))
    counts = None
    if chosen.reference is not None:
        counts = opt.reference_of(chosen.reference, events, data.columns, data.threshold)
    made: Detector = opt.make_detector(chosen.spec(data.stratum), events.labels, chosen.arl, reference=counts)
    if not isinstance(made, RecordDetector):
        raise InputError(f"{type(made).__name__} cannot watch a topic; FourRates and LFR can")
    return made


def _summarise(monitor: Monitor, seconds: float, told: _Told) -> None:
    skipped = f", {monitor.unlabelled:,} unlabelled" if monitor.unlabelled else ""
    bad = f", {opt.several(monitor.rejected, 'bad row')}" if monitor.rejected else ""
    ends = [opt.several(told.kinds[kind], kind) for kind in ("withdrawal", "recovery") if told.kinds[kind]]
    found = ", ".join([opt.several(monitor.drifts, "drift"), *ends])
    opt.say(f"{opt.several(monitor.events, 'event')} in {seconds:,.1f} s{skipped}{bad}: {found}")
    for text in told.findings:
        opt.say(f"  {text}")
    opt.say(f"now: {monitor.now()}")
