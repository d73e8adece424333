"""Metrics sent to a collector of OpenTelemetry: the numbers of ``/metrics``, by the names a collector makes of them."""

import gzip

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="OpenTelemetry is not installed")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from receiver import Receiver


def as_prometheus(metric):
    """The samples that a collector's exporter for Prometheus makes of a metric: value by name and labels."""
    kind = metric.WhichOneof("data")
    name = metric.name.replace(".", "_") + ("_seconds" if metric.unit == "s" else "") + "_total" * (kind == "sum")
    found = {}
    for point in getattr(metric, kind).data_points:
        labels = {one.key: one.value.string_value for one in point.attributes}
        if kind != "histogram":
            found[(name, *sorted(labels.items()))] = getattr(point, point.WhichOneof("value"))
            continue
        found[(f"{name}_count", *sorted(labels.items()))] = point.count
        found[(f"{name}_sum", *sorted(labels.items()))] = point.sum
        for place, bound in enumerate([*point.explicit_bounds, float("inf")]):
            below = sum(point.bucket_counts[: place + 1])
            found[(f"{name}_bucket", *sorted({**labels, "le": bound}.items(), key=lambda item: item[0]))] = below
    return found


def from_text(text):
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: float(value) if name == "le" else value for name, value in sample.labels.items()}
            found[(sample.name, *sorted(labels.items()))] = sample.value
    return {key: value for key, value in found.items() if not key[0].endswith("_created")}


def decoded(request):
    body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
    return ExportMetricsServiceRequest.FromString(body)


def test_a_collector_gets_the_numbers_of_prometheus_by_the_same_names(start, monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "300")
    receiver = Receiver()
    served = start(otlp=receiver.url.removesuffix("/hook"))
    served.http.put("/api/monitors/fraud", json={"by": ["country"]})
    body = {"y_true": [1, 0, 1], "y_pred": [1, 0, 0], "by": {"country": ["FR", "DE", "FR"]}}
    served.http.post("/api/monitors/fraud/events", json=body)
    wanted = from_text(served.http.get("/metrics").text)
    receiver.wait_for(len(receiver.requests) + 2)
    request = receiver.requests[-1]
    receiver.close()
    assert request.target == "/v1/metrics"
    (resource,) = decoded(request).resource_metrics
    about = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert about["service.name"] == "fourrates"
    (scope,) = resource.scope_metrics
    got = {}
    for metric in scope.metrics:
        assert metric.description
        got |= as_prometheus(metric)
    # The request for /metrics is counted once its answer has gone.
    changing = {"fourrates_commits_total", "fourrates_requests_waiting"}
    scraped = {key for key in got if ("route", "/metrics") in key} | {key for key in got if key[0] in changing}
    assert {key: got[key] for key in got.keys() - scraped} == {key: wanted[key] for key in wanted.keys() - scraped}
    assert got[("fourrates_events_total", ("monitor", "fraud"))] == 3
    units = {metric.name: metric.unit for metric in scope.metrics}
    assert (units["fourrates.events"], units["fourrates.request_duration"]) == ("{event}", "s")
    assert (units["fourrates.last_event_timestamp"], units["fourrates.rate"]) == ("s", "")


def test_a_collector_that_is_away_is_no_harm(start, monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    receiver = Receiver()
    receiver.close()
    served = start(otlp=receiver.url.removesuffix("/hook"))
    served.http.put("/api/monitors/fraud", json={})
    assert served.http.post("/api/monitors/fraud/events", json={"y_true": [1], "y_pred": [1]}).status_code == 200
    assert served.http.get("/readyz").status_code == 200
