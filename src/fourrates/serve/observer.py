"""The monitors as metrics and alerts see them; looked at in the writer thread, where they stand still."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from fourrates.alerts.text import rates_now
from fourrates.plain import finite, state_record
from fourrates.serve.alerting import MOST, TOLD, Watched
from fourrates.serve.errors import ApiError
from fourrates.serve.live import Hub
from fourrates.serve.metrics import MOST_RATES, Sample
from fourrates.serve.monitor import Monitor
from fourrates.serve.registry import Live, Registry
from fourrates.serve.store import StoreError
from fourrates.serve.views import drifted_segments, segment_json, status_of
from fourrates.serve.writer import Writer
from fourrates.watch.now import OpenDrift, harm


class Observer:
    """Looks at the monitors of a server, for those who only watch."""

    def __init__(self, registry: Registry, writer: Writer, hub: Hub) -> None:
        self.registry, self.writer, self.hub = registry, writer, hub

    def server(self) -> Mapping[str, float]:
        """Numbers about the server itself."""
        return {
            "monitors": len(self.registry.lives),
            "commits_total": self.writer.commits,
            "batches_total": self.writer.batches,
            "requests_waiting": self.writer.backlog,
            "stream_readers": len(self.hub.readers),
            "stream_readers_lost_total": self.hub.dropped,
        }

    async def samples(self, start: int, number: int) -> Sequence[Sample]:
        """Some of the monitors, in numbers."""

        def look() -> list[Sample]:
            names = sorted(self.registry.lives)[start : start + number]
            return [_sample(self.registry.lives[name]) for name in names]

        return await self.writer.ask(look)

    async def watched(self) -> Sequence[Watched]:
        """All monitors, as the alerts see them."""
        try:
            return await self.writer.ask(self._look)
        except ApiError as error:
            raise StoreError(error.message) from None

    def _look(self) -> list[Watched]:
        damaged = [Watched(row.id, row.uid, row.name, damaged=True) for row, _ in self.registry.damaged.values()]
        return [*map(_watched, self.registry.lives.values()), *damaged]


def _sample(live: Live) -> Sample:
    monitor = live.monitor
    counts = monitor.join.counts
    rates = islice(monitor.detector.rates.items(), MOST_RATES)
    return Sample(
        name=live.name,
        status=status_of(monitor)[0],
        evidence=finite(min(monitor.detector.evidence, 1.0)) or 0.0,
        events=monitor.events,
        waiting=counts["waiting"],
        waiting_labels=counts["waiting_labels"],
        drifts=live.drifts,
        rejected=live.rejected,
        segments=len(monitor.segments),
        drifted_segments=drifted_segments(monitor),
        last_event=finite(monitor.last_time),
        rates={
            name: (finite(state.now and state.now.value), finite(state.normal and state.normal.value))
            for name, state in rates
        },
    )


def _watched(live: Live) -> Watched:
    monitor, config = live.monitor, live.monitor.config
    since = monitor.join.waiting_since if config.alerts.labels_overdue is not None else None
    return Watched(
        id=live.row.id,
        uid=live.row.uid,
        name=live.name,
        alerts=config.alerts,
        mix=config.mix,
        silenced_until=live.row.silenced_until,
        silences=live.silences,
        position=monitor.events + sum(monitor.join.counts.values()),  # each row that arrives adds one or two
        warning=config.alerts.warnings and bool(monitor.events) and monitor.detector.warning_detected,
        waiting_since=float(since) if isinstance(since, int | float) and math.isfinite(since) else None,
        open=_open(monitor),
    )


def _open(monitor: Monitor) -> Sequence[tuple[dict[str, Any] | None, str]] | None:
    """The segments with an open drift, None for the overall stream, the worst first and in words; None if many."""
    segments = monitor.watch.open_since
    if len(segments) > MOST:
        return None
    words = {drift.segment: _words(drift) for drift in monitor.watch.now().open[:TOLD]}
    return [(segment_json(monitor, name), words.get(name, "")) for name in [*words, *(segments.keys() - words.keys())]]


def _words(drift: OpenDrift) -> str:
    worst = sorted(drift.rates.items(), key=lambda one: -harm(one[1]))
    return rates_now({rate: state_record(state) for rate, state in worst}, drift.directions)
