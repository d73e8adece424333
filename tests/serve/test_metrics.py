"""Metrics, health and logs, for machines."""

import json
import os
import re
import subprocess
import sys

import httpx
import pytest

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

from fourrates.serve.metrics import Metrics


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def metrics(served):
    answer = served.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(answer.text)


def of(name, **labels):
    return (f"fourrates_{name}", *sorted(labels.items()))


def test_what_a_monitor_has_seen_is_counted(start):
    served = start()
    served.http.put("/api/monitors/fraud", json={"by": ["country"], "reference": [[90, 10], [20, 80]]})
    body = {"y_true": [1, 0, 1, 1], "y_pred": [1, 0, 0, 1], "by": {"country": ["FR", "DE", "FR", "FR"]}}
    served.http.post("/api/monitors/fraud/events", json=body)
    served.http.post(
        "/api/monitors/fraud/predictions", json={"id": ["a", "b"], "y_pred": [1, 0], "by": {"country": ["FR", "FR"]}}
    )
    served.http.post("/api/monitors/fraud/events?bad=keep", json={**body, "y_true": [1, 0, 7, 1]})
    found = metrics(served)
    assert found[of("events_total", monitor="fraud")] == 7
    assert found[of("predictions_waiting", monitor="fraud")] == 2
    assert found[of("rejected_rows", monitor="fraud")] == 1
    assert found[of("segments", monitor="fraud")] == 2
    assert found[of("rate", monitor="fraud", rate="tpr")] == pytest.approx(4 / 5)
    assert found[of("rate_normal", monitor="fraud", rate="tpr")] == pytest.approx(0.8, abs=0.02)
    assert 0 <= found[of("evidence", monitor="fraud")] <= 1
    assert found[of("drifts_total", monitor="fraud")] == 0
    stands = {word: found[of("status", monitor="fraud", status=word)] for word in ("stable", "warning", "drifted")}
    assert sum(stands.values()) == 1
    route = {"method": "POST", "route": "/api/monitors/{name}/events", "status": "2xx"}
    assert found[of("request_duration_seconds_count", **route)] == 2
    assert found[of("request_duration_seconds_sum", **route)] > 0
    assert found[of("batches_total")] == 3


@pytest.mark.slow
def test_what_is_asked_for_does_not_become_labels(start):
    served = start()
    for number in range(200):
        served.http.get(f"/nowhere/{number}")
        served.http.get(f"/api/monitors/m{number}")
        served.http.request(f"X{number % 7}", "/")
    routes = {key for key in metrics(served) if key[0] == "fourrates_request_duration_seconds_count"}
    assert len(routes) < 10


def test_hostile_names_stay_names(start):
    import asyncio

    names = ['a"} 1\nfourrates_events_total{monitor="b', "\\", "é{}", "x" * 1_000]

    async def monitors():
        for name in names:
            yield [("events_total", [name], 1.0), ("rate", [name, 'r"\n'], 0.5)]

    text = asyncio.run(Metrics(monitors, dict).text()).decode()
    events = [key for key in samples(text) if key[0] == "fourrates_events_total"]
    assert sorted(key[1][1] for key in events) == sorted(names)


def test_rates_of_many_classes_are_bounded(start):
    served = start()
    served.http.put("/api/monitors/many", json={"labels": list(range(200))})
    served.http.post("/api/monitors/many/events", json={"y_true": list(range(200)), "y_pred": list(range(200))})
    assert len([key for key in metrics(served) if key[0] == "fourrates_rate"]) <= 40


def test_health_and_readiness(start):
    served = start()
    assert served.http.get("/healthz").text == "ok\n"
    assert served.http.get("/readyz").status_code == 200


@pytest.mark.slow
def test_the_log_is_lines_of_json(tmp_path):
    command = [sys.executable, "-m", "fourrates", "serve", "--port=0", "--data", tmp_path / "data"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        with httpx.Client(base_url=url, transport=httpx.HTTPTransport(retries=10)) as http:
            http.put("/api/monitors/x%0a%22", content=b"\xff\n")
    finally:
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert process.returncode in (0, -15)
    lines = [json.loads(line) for line in log.splitlines()]
    assert lines
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
