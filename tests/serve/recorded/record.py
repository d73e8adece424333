"""Record what a KServe model server answers, as the CloudEvents that KServe's logger makes of it.

python tests/serve/recorded/record.py kserve.jsonl.gz

Needs kserve and cloudevents, in an environment of their own. A real server answers requests by the protocols V1 and
V2; its agent, which is written in Go, is not run: the attributes of an event are those that its source sets. Each line
has the headers and the body of an event, or the truth of its rows. From request 100 on the amounts of France arrive as
0.
"""

import gzip
import json
import signal
import sys
import threading
import time

import httpx
import numpy as np
from cloudevents.conversion import to_binary
from cloudevents.http import CloudEvent
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer

PORT, REQUESTS, BROKEN, ROWS = 18_080, 200, 100, 8
URL = f"http://127.0.0.1:{PORT}"


class Fraud(Model):
    """Predicts fraud from 700 on."""

    def __init__(self):
        super().__init__("fraud")
        self.ready = True

    def predict(self, payload, headers=None):
        if not isinstance(payload, InferRequest):
            return {"predictions": [int(row["amount"] >= 700) for row in payload["instances"]]}
        (amounts,) = [one.as_numpy() for one in payload.inputs if one.name == "amount"]
        data = (amounts >= 700).astype(int).ravel().tolist()
        output = InferOutput(name="fraud", shape=[len(data)], datatype="INT64", data=data)
        return InferResponse(response_id=payload.id, model_name=self.name, infer_outputs=[output])


def event(kind, id, body, at):
    attributes = {
        "id": id,
        "type": f"org.kubeflow.serving.inference.{kind}",
        "source": "http://localhost:9081/",
        "time": f"2024-01-01T09:{at // 60:02}:{at % 60:02}Z",
        "datacontenttype": "application/json",
        **{"inferenceservicename": "fraud", "namespace": "default", "component": "predictor", "endpoint": "default"},
    }
    headers, data = to_binary(CloudEvent(attributes, body))
    return {"headers": headers, "body": data.decode()}


def ask(http, number, amounts, countries):
    """One request by V1 or V2, and what was answered."""
    if number % 2:
        rows = [{"amount": a, "country": c} for a, c in zip(amounts, countries, strict=True)]
        asked, path = {"instances": rows}, "/v1/models/fraud:predict"
    else:
        tensors = [("amount", "FP64", amounts), ("country", "BYTES", countries)]
        inputs = [{"name": n, "shape": [len(d)], "datatype": t, "data": d} for n, t, d in tensors]
        asked, path = {"id": f"own-{number}", "inputs": inputs}, "/v2/models/fraud/infer"
    body = json.dumps(asked)
    answer = http.post(path, content=body, headers={"content-type": "application/json"})
    answer.raise_for_status()
    return body.encode(), answer.content


def record(path):
    rng = np.random.default_rng(36)
    with httpx.Client(base_url=URL, transport=httpx.HTTPTransport(retries=20)) as http, gzip.open(path, "wt") as file:
        while http.get("/v2/health/ready").status_code != 200:
            time.sleep(0.1)
        for number in range(REQUESTS):
            countries = rng.choice(["FR", "DE"], ROWS).tolist()
            truth = (rng.random(ROWS) < 0.3).astype(int)
            amounts = np.where(truth == (rng.random(ROWS) < 0.95), 900, 100) + rng.integers(0, 50, ROWS)
            sent = [0 if number >= BROKEN and c == "FR" else int(a) for a, c in zip(amounts, countries, strict=True)]
            asked, answered = ask(http, number, sent, countries)
            id = f"request-{number}"
            events = [event("request", id, asked, number), event("response", id, answered, number)]
            for line in events if number % 5 else reversed(events):  # two workers send them, in either order
                file.write(json.dumps(line) + "\n")
            own = id if number % 2 else f"own-{number}"
            labels = {"id": [f"{own}/{row}" for row in range(ROWS)], "y_true": truth.tolist()}
            file.write(json.dumps({"labels": labels}) + "\n")

    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=record, args=(sys.argv[1],), daemon=True).start()
    ModelServer(http_port=PORT, enable_grpc=False, access_log_format=None).start([Fraud()])
