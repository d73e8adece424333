"""Servers on the loopback, as they are started, and a PostgreSQL."""

import sys
from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette")
from served import Served

from fourrates.serve.app import Service
from fourrates.serve.limits import uvicorn_options
from fourrates.serve.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from servers import Postgres, postgres_programs


@pytest.fixture
def start(tmp_path):
    """Start a server with these settings on the folder of the test; it is stopped at the end."""
    running = []

    def begin(**settings):
        chosen = Settings(data=tmp_path / "data", **settings)
        app = Service(chosen)
        served = Served(app, **uvicorn_options(chosen.max_body))
        served.app, served.data = app, chosen.data
        served.http = httpx.Client(base_url=served.url, timeout=30)
        running.append(served)
        return served

    yield begin
    for served in running:
        served.http.close()
        served.close()


@pytest.fixture(scope="session")
def postgres():
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with Postgres() as database:
        yield database
