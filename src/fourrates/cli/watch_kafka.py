"""``fourrates watch kafka://broker/topic``: watch a Kafka topic."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from fourrates.cli import options as opt
from fourrates.cli.delivery import BadRows, Delivery, open_spool, view_of
from fourrates.cli.errors import checked
from fourrates.cli.lines import FRAME, Lines
from fourrates.cli.watching import until_asked
from fourrates.detectors.base import RecordDetector
from fourrates.engines.kafka import Address, Monitor
from fourrates.engines.kafka.reader import RejectedMessage
from fourrates.frames import new_detector
from fourrates.io import InputError

if TYPE_CHECKING:
    from fourrates.alerts import Channel

NAMED = 20  # bad messages reported if they are not saved


def watch_topic(
    url: str,
    data: opt.Data,
    chosen: opt.Chosen,
    channels: Sequence[Channel],
    *,
    json: bool,
    shifts: bool,
    bad_rows: Path | None,
    state: Path | None,
) -> int:
    address = Address.parse(url)
    given = click.get_current_context().get_parameter_source("bad") is not ParameterSource.DEFAULT
    bad = data.bad if given else "keep"  # a topic cannot be repaired, so one bad message must not end the watch
    made = _detector(data, chosen)
    with ExitStack() as stack:
        aside = None
        if bad_rows is not None:
            aside = BadRows(bad_rows)
            stack.callback(aside.close)
        delivery = Delivery(Lines(), open_spool([*channels], state, url))
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
                version=data.version,
                threshold=data.threshold,
                bad=bad,
                found=delivery.report,
                shifted=delivery.report if shifts else None,
                refuse=_Refused(aside, address.dead_letter is not None),
                on_message=opt.say,
            )
        delivery.view = view_of(monitor, False, str(address), json)
        status = 0
        try:
            with delivery.view as view, until_asked() as asked, monitor:
                while not asked():
                    monitor.step(FRAME)
                    view.tick()
                now = monitor.now()  # before its partitions are given away
        finally:
            status = delivery.finish()
    skipped = f", {monitor.unlabelled:,} unlabelled" if monitor.unlabelled else ""
    rejected = f", {opt.several(monitor.rejected, 'bad row')}" if monitor.rejected else ""
    delivery.summary(monitor.events, now, skipped + rejected)
    return status


class _Refused:
    """Writes rejected messages to their file, or else reports the first ones."""

    def __init__(self, aside: BadRows | None, dead_letters: bool) -> None:
        self.aside, self.dead_letters, self.named = aside, dead_letters, 0

    def __call__(self, source: str, rejected: RejectedMessage) -> None:
        if self.aside is not None:
            self.aside.refuse(source, rejected.offset, rejected.value or b"", rejected.problem)
            self.aside.flush()
        elif not self.dead_letters and self.named < NAMED:
            self.named += 1
            more = "; further ones are counted only" if self.named == NAMED else ""
            opt.say(f"{rejected.problem}{more}")


def _detector(data: opt.Data, chosen: opt.Chosen) -> RecordDetector:
    classes, positive = data.classes
    with checked():
        events = opt.events_of({}, data.columns, labels=classes or [0, 1], positive=positive)
        made, references = new_detector(events=events, threshold=data.threshold, **chosen.detector_options(data))
    if references is not None:
        raise InputError("--reference: a topic has one for all segments; leave out their column")
    if not isinstance(made, RecordDetector):
        raise InputError(f"{type(made).__name__} cannot watch a topic; FourRates and LFR can")
    return made
