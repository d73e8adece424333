"""The example board and the alert rules name metrics and labels that the service has."""

import json
import re
from pathlib import Path

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
