"""The description of the API is true: every route is in it, and real answers are as it says."""

import subprocess
import sys

import pytest

pytest.importorskip("starlette")

NOT_API = {"/"}  # the page


def test_every_route_is_described_and_nothing_else(start):
    served = start()
    paths = served.http.get("/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    routes = {
        (call.method, call.path)
        for call in served.app.calls
        if call.path not in NOT_API and not call.path.startswith("/static/")
    }
    assert described == routes
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert operation["summary"].endswith("."), (method, path)
            assert {"200", "204"} & set(operation["responses"])


def test_operations_have_names_of_their_own(start):
    paths = start().http.get("/openapi.json").json()["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(names) == len(set(names))


CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance"
)


def schemathesis(served, folder, examples, *options):
    """Run it against a server; what it printed, once it has found nothing wrong."""
    command = [sys.executable, "-m", "schemathesis.cli", *options[:2], "run", f"{served.url}/openapi.json"]
    command += ["--checks", CHECKS, "--max-examples", str(examples), "--seed", "1", "--no-color", *options[2:]]
    command += ["--exclude-path", "/api/stream", "--suppress-health-check", "all", "--request-timeout", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert served.http.get("/healthz").status_code == 200
    return done.stdout


def drifted(served):
    """A monitor that has drifted, and the id of that."""
    served.http.put("/api/monitors/fraud", json={"arl": 1_000, "by": ["country"]})
    truth = [0, 1] * 3_000
    pred = truth[:4_000] + [1 - one for one in truth[4_000:]]
    body = {"id": list(range(6_000)), "y_true": truth, "y_pred": pred, "by": {"country": ["FR"] * 6_000}}
    return served.http.post("/api/monitors/fraud/events", json=body).json()["findings"][0]


@pytest.mark.slow
def test_answers_about_a_monitor_are_as_described(start, tmp_path):
    """Generated requests, sound and unsound, to a monitor and a drift that are there; nothing but it is removed."""
    pytest.importorskip("schemathesis")
    served = start()
    config = tmp_path / "schemathesis.toml"
    query = """"query.segment" = '["FR"]'"""
    config.write_text(f'[parameters]\n"path.name" = "fraud"\n"path.id" = "{drifted(served)}"\n{query}\n')
    told = schemathesis(
        served,
        tmp_path,
        8,
        *("--config-file", str(config), "--exclude-method", "DELETE", "--phases", "examples,coverage,fuzzing"),
    )
    assert "Missing test data" not in told, "some operations were never reached"
    assert len(served.http.get("/api/monitors").json()["monitors"]) == 1


@pytest.mark.slow
def test_answers_about_monitors_of_any_name_are_as_described(start, tmp_path):
    pytest.importorskip("schemathesis")
    schemathesis(start(), tmp_path, 5, "--config-file", "/dev/null", "--phases", "fuzzing")
