"""Metrics of a server, as Prometheus text at ``/metrics``; ``otlp.py`` sends the same to a collector.

Labels are bounded, monitors by their limit, rates by :data:`MOST_RATES` for each monitor, requests by the routes.
Segments are counted, never named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

import fourrates
from fourrates.plain import finite
from fourrates.serve.registry import Live
from fourrates.serve.views import drifted_segments, status_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATUSES = ("stable", "warning", "drifted", "waiting")
MOST_RATES = 40  # of one monitor; those of its first classes
NOW = "A rate now, since the alarm while a drift is open, over the latest events otherwise."
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


# Metrics of each monitor, besides its status and its rates; those that end in _total are counters.
PER_MONITOR: dict[str, tuple[str, Callable[[Live], float | None]]] = {
    "events_total": ("Pairs of truth and prediction watched.", lambda live: live.monitor.events),
    "drifts_total": ("Drifts found.", lambda live: live.drifts),
    "evidence": (
        "Evidence of a drift, as a share of an alarm.",
        lambda live: finite(min(live.monitor.detector.evidence, 1.0)) or 0.0,
    ),
    "predictions_waiting": ("Predictions that wait for their label.", lambda live: live.monitor.join.counts["waiting"]),
    "labels_waiting": (
        "Labels that wait for their prediction.",
        lambda live: live.monitor.join.counts["waiting_labels"],
    ),
    "to_label": (
        "Predictions drawn for labelling that wait for their label.",
        lambda live: len(live.monitor.to_label.waiting),
    ),
    "rejected_rows": ("Rejected rows that are kept.", lambda live: live.rejected),
    "segments": ("Segments that are watched.", lambda live: len(live.monitor.segments)),
    "segments_drifted": ("Segments that have drifted.", lambda live: drifted_segments(live.monitor)),
    "last_event_timestamp_seconds": ("When the last event happened.", lambda live: finite(live.monitor.last_time)),
}


Sample = tuple[str, list[str], float]  # a metric of a monitor, its labels and its value


def samples_of(live: Live) -> list[Sample]:
    """A monitor in numbers."""
    status = status_of(live.monitor)[0]
    samples = [("status", [live.name, word], float(word == status)) for word in STATUSES]
    shares: list[tuple[str, list[str], float | None]] = []
    for rate, state in islice(live.monitor.detector.rates.items(), MOST_RATES):
        shares.append(("rate", [live.name, rate], finite(state.now and state.now.value)))
        shares.append(("rate_normal", [live.name, rate], finite(state.normal and state.normal.value)))
    shares += [(name, [live.name], value_of(live)) for name, (_, value_of) in PER_MONITOR.items()]
    return samples + [(name, labels, value) for name, labels, value in shares if value is not None]


class Metrics:
    """The numbers of a server.

    `monitors` has the samples of the monitors; `server` gives numbers about the server itself, of which names ending
    in ``_total`` are counters.
    """

    def __init__(
        self, monitors: Callable[[], AsyncIterator[Sequence[Sample]]], server: Callable[[], Mapping[str, float]]
    ) -> None:
        self._monitors, self._server = monitors, server
        self.registry = CollectorRegistry(auto_describe=False)
        self._histograms: dict[tuple[str, str, str], Histogram] = {}
        self._seconds = Histogram(
            "fourrates_request_duration_seconds",
            "How long requests took, by route.",
            ["method", "route", "status"],
            buckets=BUCKETS,
            registry=self.registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        key = method, route, f"{status // 100}xx"
        if (histogram := self._histograms.get(key)) is None:  # the library takes a lock and three checks for it
            histogram = self._histograms[key] = self._seconds.labels(*key)
        histogram.observe(seconds)

    async def text(self) -> bytes:
        return generate_latest(_Families(await self.families()))

    async def families(self) -> list[Metric]:
        families = {
            "status": _family("status", "1 for the status of a monitor.", labels=["monitor", "status"]),
            "rate": _family("rate", NOW, labels=["monitor", "rate"]),
            "rate_normal": _family("rate_normal", "The normal level of a rate.", labels=["monitor", "rate"]),
        }
        families |= {name: _family(name, meaning, labels=["monitor"]) for name, (meaning, _) in PER_MONITOR.items()}
        async for samples in self._monitors():
            for name, labels, value in samples:
                families[name].add_metric(labels, value)
        return [*self._of_server(), *families.values(), *self.registry.collect()]

    def _of_server(self) -> Iterable[Metric]:
        info = GaugeMetricFamily("fourrates_build_info", "The version that runs.", labels=["version"])
        info.add_metric([fourrates.__version__], 1.0)
        yield info
        for name, value in self._server().items():
            meaning = name.removesuffix("_total").replace("_", " ").capitalize() + "."
            yield _family(name, meaning, value=value)


def _family(name: str, meaning: str, **options: Any) -> Any:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(f"fourrates_{name}", meaning, **options)


class _Families(list[Metric]):
    def collect(self) -> list[Metric]:
        return self
