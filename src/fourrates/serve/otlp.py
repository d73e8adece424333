"""The numbers of ``/metrics`` for a collector of OpenTelemetry, over OTLP/HTTP.

A collector derives the names in ``/metrics`` from these names and units. ``fourrates.events`` in ``{event}`` becomes
``fourrates_events_total``, and ``fourrates.request_duration`` in ``s`` becomes ``fourrates_request_duration_seconds``.
Attributes are the labels. Variables such as OTEL_METRIC_EXPORT_INTERVAL and OTEL_EXPORTER_OTLP_HEADERS have their usual
meaning.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric

import fourrates

log = logging.getLogger("fourrates.serve")
INTERVAL = 60_000  # milliseconds, as OpenTelemetry has it
CUMULATIVE = export.AggregationTemporality.CUMULATIVE
THINGS = ("event", "drift", "prediction", "label", "row", "segment", "monitor", "commit", "batch", "request", "reader")


class Otlp:
    """Sends the metrics of `families` to a collector, such as ``http://127.0.0.1:4318``."""

    def __init__(self, endpoint: str, families: Callable[[], Awaitable[Iterable[Metric]]]) -> None:
        self._families, self._began = families, time.time_ns()
        self._exporter = OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics")
        self._interval = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", INTERVAL)) / 1_000
        self._resource = Resource.create({"service.name": "fourrates", "service.version": fourrates.__version__})

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._interval)
                try:
                    data = self.data(await self._families())
                    await asyncio.to_thread(self._exporter.export, data)
                except Exception as error:
                    log.warning("no metrics for the collector: %s", error)
        finally:
            self._exporter.shutdown()  # or the thread would keep trying

    def data(self, families: Iterable[Metric]) -> export.MetricsData:
        now = time.time_ns()
        metrics = [self._metric(family, now) for family in families]
        scope = export.ScopeMetrics(InstrumentationScope("fourrates", fourrates.__version__), metrics, "")
        return export.MetricsData([export.ResourceMetrics(self._resource, [scope], "")])

    def _metric(self, family: Metric, now: int) -> export.Metric:
        bare = family.name.removeprefix("fourrates_")
        unit = "s" if bare.endswith("_seconds") else next((f"{{{thing}}}" for thing in THINGS if thing in bare), "")
        data: Any
        if family.type == "histogram":
            data = export.Histogram(self._histograms(family, now), CUMULATIVE)
        else:
            samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            points = [export.NumberDataPoint(sample.labels, self._began, now, sample.value) for sample in samples]
            data = export.Sum(points, CUMULATIVE, True) if family.type == "counter" else export.Gauge(points)
        return export.Metric("fourrates." + bare.removesuffix("_seconds"), family.documentation, unit, data)

    def _histograms(self, family: Metric, now: int) -> list[export.HistogramDataPoint]:
        found: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
        for sample in family.samples:
            labels = {**sample.labels}
            part = labels.pop("le", sample.name.rpartition("_")[2])
            found.setdefault(tuple(labels.items()), {})[part] = sample.value
        points, extremes = [], dict.fromkeys(("min", "max"))  # which are not known
        for key, parts in found.items():
            total, count, _ = parts.pop("sum"), int(parts.pop("count")), parts.pop("created", None)
            below = [0, *map(int, parts.values())]
            counts = [after - before for before, after in pairwise(below)]
            bounds = [float(bound) for bound in parts][:-1]
            whole = {"count": count, "sum": total, "bucket_counts": counts, "explicit_bounds": bounds, **extremes}
            points.append(export.HistogramDataPoint(dict(key), self._began, now, **whole))  # type: ignore[arg-type]
        return points
