"""The monitor for BentoML: a real service of BentoML's, tried where that is installed."""

import pytest

pytest.importorskip("bentoml", reason="BentoML is not installed")

import bentoml
import httpx
from served import Served

from fourrates.serve.app import Service
from fourrates.serve.settings import Settings


def test_what_a_service_logs_as_prediction_and_target_reaches_the_monitor(tmp_path):
    options = {"folder": str(tmp_path / "client"), "by": ["country"]}

    @bentoml.service
    class Fraud:
        @bentoml.api
        def predict(self, amounts: list[int], countries: list[str]) -> list[int]:
            found = [int(amount > 700) for amount in amounts]
            with bentoml.monitor("fraud", "fourrates.client.bentoml.Monitor", options) as monitor:
                monitor.log_batch(amounts, "amount", "feature", "numerical")
                monitor.log_batch(countries, "country", "feature", "categorical")
                monitor.log_batch(found, "fraud", "prediction", "categorical")
            return found

    with Served(Service(Settings(data=tmp_path / "data"))) as service:
        options["url"] = service.url
        http = httpx.Client(base_url=service.url)
        http.put("/api/monitors/fraud", json={"by": ["country"]})
        with Served(Fraud.to_asgi()) as app:
            body = {"amounts": [900, 100], "countries": ["FR", "DE"]}
            answer = httpx.post(f"{app.url}/predict", json=body, timeout=30)
        assert answer.json() == [1, 0]
        client = bentoml._internal.monitoring.api._MONITOR_INSTANCES["fraud"].client
        assert client.flush()
        id = answer.headers["x-bentoml-request-id"]
        labels = {"id": [f"{id}/0", f"{id}/1"], "y_true": [1, 1]}
        http.post("/api/monitors/fraud/labels", json=labels).raise_for_status()
        now = http.get("/api/monitors/fraud").json()
        assert (now["confusion"], now["segments"]) == ([[0, 0], [1, 1]], 2)
        client.close()
