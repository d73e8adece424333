"""The description of the API is true: every route is in it, and real answers are as it says."""

import subprocess
import sys

import pytest

pytest.importorskip("starlette")
from starlette.routing import Mount

NOT_API = {"/"}  # the page


def test_every_route_is_described_and_nothing_else(start):
    served = start()
    paths = served.http.get("/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    routes = {
        (method, route.path)
        for route in served.app.routes
        if not isinstance(route, Mount) and route.path not in NOT_API
        for method in route.methods - {"HEAD"}
    }
    assert described == routes
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert operation["summary"].endswith("."), (method, path)
            assert "200" in operation["responses"] or "204" in operation["responses"]


def test_operations_have_names_of_their_own(start):
    paths = start().http.get("/openapi.json").json()["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_schemathesis_finds_nothing_that_is_not_as_described(start, tmp_path):
    """Generated requests, sound and unsound: no server error, no answer that the description does not have."""
    pytest.importorskip("schemathesis")
    served = start()
    served.http.put("/api/monitors/fraud", json={"by": ["country"]})
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json"]
    command += ["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"]
    command[-1] += ",response_schema_conformance,response_headers_conformance"
    command += ["--max-examples", "30", "--seed", "1", "--exclude-path", "/api/stream", "--phases", "examples,fuzzing"]
    command += ["--suppress-health-check", "all", "--request-timeout", "20", "--no-color"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert served.http.get("/healthz").status_code == 200
