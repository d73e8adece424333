"""The example board and the alert rules name metrics and labels that the service has.

A real Prometheus reads them where one is installed, and Grafana's own types hold the board.
"""

import json
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "grafana"
SELECTOR = re.compile(r"(fourrates_\w+)(?:\{([^}]*)\})?")
BY = re.compile(r"\b(?:by|on) ?\(([^)]*)\)")


def expressions():
    board = json.loads((FOLDER / "fourrates.json").read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    found += [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    return found + re.findall(r"^ +expr: (.*)$", (FOLDER / "alerts.yml").read_text(), re.MULTILINE)


@pytest.fixture
def exposed(start):
    """The metrics of a server that has seen something: from names to the labels they bear."""
    served = start()
    name = "/api/monitors/fraud"
    served.http.put(name, json={"labels": [0, 1], "by": ["country"], "reference": [[900, 100], [100, 900]]})
    served.http.post(f"{name}/events", json={"y_true": [1] * 300, "y_pred": [0] * 300, "by": {"country": ["FR"] * 300}})
    found = {}
    for line in served.http.get("/metrics").text.splitlines():
        metric = re.match(r"(\w+)(?:\{(.*)\})? ", line)
        if metric and not line.startswith("#"):
            found.setdefault(metric[1], set()).update(re.findall(r'(\w+)="', metric[2] or ""))
    return found


def test_every_metric_and_label_of_the_board_and_the_rules_is_exposed(exposed):
    written = expressions()
    assert len(written) > 15
    for expression in written:
        told = SELECTOR.findall(expression)
        assert bool(told) != expression.startswith("up{"), expression
        for name, conditions in told:
            assert name in exposed, expression
            assert set(re.findall(r"(\w+)=", conditions)) <= exposed[name], expression
            for listed in BY.findall(expression):
                assert {one.strip() for one in listed.split(",")} <= exposed[name], expression


def test_legends_use_labels_that_their_metrics_bear(exposed):
    board = json.loads((FOLDER / "fourrates.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert all(shown <= exposed[name] for name, _ in SELECTOR.findall(target["expr"])), target


def left_out(given, kept, path=""):
    """What of a board is not in another one, by its path."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [one for name in given for one in left_out(given[name], kept.get(name), f"{path}/{name}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = zip(given, kept, strict=True)
        return [one for place, pair in enumerate(pairs) for one in left_out(*pair, f"{path}/{place}")]
    return [] if given == kept else [path]


def through_grafanas_types(board):
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(board)))


def test_grafanas_own_types_know_every_field_of_the_board():
    pytest.importorskip("grafana_foundation_sdk", reason="Grafana's types are not installed")
    board = json.loads((FOLDER / "fourrates.json").read_text())
    assert left_out(board, through_grafanas_types(board)) == []
    board["panels"][0]["grid"] = board["panels"][0].pop("gridPos")
    assert left_out(board, through_grafanas_types(board)) == ["/panels/0/grid"]


@pytest.mark.slow
def test_a_real_prometheus_loads_the_rules_and_answers_every_expression(start, tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("no Prometheus here")
    served = start()
    served.http.put("/api/monitors/fraud", json={"by": ["country"], "reference": [[900, 100], [100, 900]]})
    body = {"y_true": [1, 0] * 300, "y_pred": [0, 0] * 300, "by": {"country": ["FR"] * 600}}
    served.http.post("/api/monitors/fraud/events", json=body)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(FOLDER / "alerts.yml")],
        "scrape_configs": [{"job_name": "fourrates", "static_configs": [{"targets": [served.url[7:]]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    command = ["prometheus", *options, f"--web.listen-address={address}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://{address}/api/v1", transport=httpx.HTTPTransport(retries=10)) as http:

            def ask(expression):
                written = expression.replace("$monitor", ".*").replace("$__rate_interval", "1m")
                answer = http.get("/query", params={"query": written}).json()
                assert answer["status"] == "success", (expression, answer)
                return answer["data"]["result"]

            end = time.monotonic() + 60
            while not ask("rate(fourrates_request_duration_seconds_count[1m])") and time.monotonic() < end:
                time.sleep(0.5)
            assert ask("fourrates_events_total")[0]["value"][1] == "600"
            for expression in expressions():
                if not expression.startswith("label_values("):
                    ask(expression)
            while not ask('ALERTS{monitor="fraud"}') and time.monotonic() < end:
                time.sleep(0.5)
            assert ask('ALERTS{monitor="fraud"}'), "a monitor that has drifted is an alert, pending at first"
    finally:
        process.terminate()
        process.wait(30)
