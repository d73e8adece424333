"""Servers on the loopback, as they are started."""

import httpx
import pytest

pytest.importorskip("starlette")
from served import Served

from fourrates.serve.app import create_app
from fourrates.serve.direct import DirectProtocol
from fourrates.serve.limits import uvicorn_options
from fourrates.serve.settings import Settings


@pytest.fixture
def start(tmp_path):
    """Start a server with these settings on the folder of the test; it is stopped at the end."""
    running = []

    def begin(**settings):
        chosen = Settings(data=tmp_path / "data", **settings)
        app = create_app(chosen)
        served = Served(app, **uvicorn_options(chosen.max_body, protocol=DirectProtocol, direct=app.state.direct))
        served.app, served.data = app, chosen.data
        served.http = httpx.Client(base_url=served.url, timeout=30)
        running.append(served)
        return served

    yield begin
    for served in running:
        served.http.close()
        served.close()
