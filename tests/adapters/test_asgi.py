"""The middleware for web applications: a real application, a real service, and labels that come later."""

import json
from datetime import date
from decimal import Decimal
from types import SimpleNamespace

import httpx
import pytest

pytest.importorskip("starlette")
from awkward import KEYS, LABELS
from served import Served
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

import fourrates as fr
from fourrates.client.asgi import LogPredictions
from fourrates.serve.app import Service
from fourrates.serve.settings import Settings


async def predict(request):
    asked = await request.json()
    if "instances" in asked:
        return JSONResponse({"predictions": [int(row["amount"] > 700) for row in asked["instances"]]})
    if asked["amount"] < 0:
        return JSONResponse({"problem": "amount"}, 422)
    if asked["amount"] == 0:
        return PlainTextResponse("none")
    return JSONResponse({"prediction": int(asked["amount"] > 700), "score": asked["amount"] / 1_000})


@pytest.fixture
def bench(tmp_path):
    """Make an application with the middleware; what it is asked by, and what the monitor has then."""
    service = Served(Service(Settings(data=tmp_path / "data")))
    client = fr.Client(service.url, folder=tmp_path / "client")
    monitors = httpx.Client(base_url=service.url)
    apps, asking = [], []

    def make(config, **options):
        monitors.put("/api/monitors/fraud", json=config)
        routes = [Route("/predict", predict, methods=["POST"]), Route("/other", predict, methods=["POST"])]
        app = Starlette(routes=routes)
        app.add_middleware(LogPredictions, client=client, monitor="fraud", **options)
        apps.append(Served(app))

        def label(ids, truths):
            assert client.flush()
            monitors.post("/api/monitors/fraud/labels", json={"id": ids, "y_true": truths}).raise_for_status()
            return monitors.get("/api/monitors/fraud").json()["confusion"]

        asking.append(httpx.Client(base_url=apps[-1].url))
        return asking[-1], label, client

    yield make
    client.close()
    for http in [*asking, monitors]:
        http.close()
    for server in [*apps, service]:
        server.close()


def test_a_prediction_is_joined_with_the_label_by_the_header_of_its_answer(bench):
    http, label, client = bench({"by": ["country"]}, by=["country"])
    answers = [http.post("/predict", json={"amount": amount, "country": "FR"}) for amount in (900, 100)]
    mine = http.post("/predict", json={"amount": 800, "country": "DE"}, headers={"x-request-id": "mine"})
    assert answers[0].json() == {"prediction": 1, "score": 0.9}
    assert "x-request-id" not in mine.headers
    assert label([*(one.headers["x-request-id"] for one in answers), "mine"], [1, 0, 0]) == [[1, 1], [0, 1]]
    assert client.dropped == 0


def test_scores_ids_of_ones_own_and_the_protocol_v1(bench):
    http, label, _ = bench({"threshold": 0.5}, score="score", id="order")
    http.post("/predict", json={"amount": 600, "order": 17})
    assert label([17], [1]) == [[0, 0], [0, 1]]
    http, label, _ = bench({}, pred="predictions", id="order")
    http.post("/predict", json={"instances": [{"amount": 900, "order": 18}, {"amount": 100, "order": 19}]})
    assert label([18, 19], [1, 1]) == [[0, 0], [1, 2]]


def test_what_is_no_prediction_is_passed_on_and_what_cannot_be_logged_is_counted(bench):
    http, _, client = bench({}, limit=200)
    assert http.post("/other", json={"amount": 900}).json()["prediction"] == 1
    assert http.post("/predict", json={"amount": -1}).status_code == 422
    assert client.dropped == 0
    assert http.post("/predict", json={"amount": 0}).text == "none"
    assert http.post("/predict", json={"amount": 900, "note": "x" * 300}).json()["prediction"] == 1
    assert client.dropped == 1, "the request is not needed without an id or a segment of its own"
    assert client.waiting + client.sent == 1


@pytest.mark.parametrize("value", LABELS, ids=lambda value: f"{value!r:.30}")
def test_a_value_is_logged_as_it_was_answered(value):
    if isinstance(value, Decimal | date) or value == [1]:
        pytest.skip("JSON has no such value, or a row of one value is that value")
    logged = []
    client = SimpleNamespace(log=lambda monitor, **columns: logged.append(columns))
    middleware = LogPredictions(None, client, "fraud", by=["k"])
    for key in KEYS:
        if not isinstance(key, Decimal | date):
            middleware._log("a", json.dumps({"k": key}).encode(), json.dumps({"prediction": value}).encode())
            assert logged.pop() == {"y_pred": [value], "id": ["a"], "by": {"k": [key]}}
