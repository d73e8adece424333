"""Batches of events are answered the same, however their bytes come."""

import gzip
import json
import socket
import time

import pytest

pytest.importorskip("starlette")
from fourrates.serve.bodies import read_table
from fourrates.serve.ingest import AT_ONCE, IN_FLIGHT, InFlight

GOOD = b'{"y_true": [1, 0], "y_pred": [1, 1]}'


def head(target, body, *headers, version="1.1"):
    lines = [f"POST {target} HTTP/{version}", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()


class Connection:
    def __init__(self, served):
        self.socket = socket.create_connection(("127.0.0.1", served.port), timeout=20)
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        """Status, headers and body of the next answer."""
        while b"\r\n\r\n" not in self.data:
            self._more()
        first, _, self.data = self.data.partition(b"\r\n\r\n")
        status, *lines = first.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        while len(self.data) < int(headers["content-length"]):
            self._more()
        body, self.data = (
            self.data[: int(headers["content-length"])],
            self.data[int(headers["content-length"]) :],
        )
        return int(status.split()[1]), headers, json.loads(body)

    def _more(self):
        more = self.socket.recv(1 << 16)
        assert more, "the server has closed the connection"
        self.data += more


@pytest.fixture
def served(start):
    served = start()
    assert served.http.put("/api/monitors/m", json={}).status_code == 201
    return served


@pytest.mark.parametrize(
    ("target", "body", "headers"),
    [
        ("/api/monitors/m/events", GOOD, []),
        ("/api/monitors/m/events?bad=skip", b'{"y_true": [1, 7], "y_pred": [1, 1]}', []),
        ("/api/monitors/m/predictions", b'{"id": ["a"], "y_pred": [1]}', []),
        ("/api/monitors/m/labels", b'{"id": ["b"], "y_true": [1]}', []),
        ("/api/monitors/m/events", b'{"y_true": [1, 7], "y_pred": [1, 1]}', []),
        ("/api/monitors/m/events", b"{", []),
        ("/api/monitors/m/events", b"", []),
        ("/api/monitors/m/events?bad=never", GOOD, []),
        ("/api/monitors/m/events", GOOD, ["Idempotency-Key: " + "k" * 201]),
        ("/api/monitors/m/events", GOOD, ["Host: elsewhere.example"]),
        ("/api/monitors/m/events", GOOD, ["Origin: https://elsewhere.example"]),
        ("/api/monitors/nobody/events", GOOD, []),
        ("/api/monitors/m%2Fn/events", GOOD, []),
    ],
)
def test_a_body_in_chunks_gets_the_same_answer(served, target, body, headers):
    request = head(target, body, *headers)
    if "Host: elsewhere.example" in headers:
        request = request.replace(b"Host: localhost\r\n", b"")
    with Connection(served) as connection:
        connection.send(request + body)
        short = connection.answer()
        length = f"Content-Length: {len(body)}".encode()
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        connection.send(request.replace(length, b"Transfer-Encoding: chunked") + chunk + b"0\r\n\r\n")
        long = connection.answer()
    if target.endswith(("predictions", "labels")):  # the id was met before
        assert (short[2].pop("repeated"), long[2].pop("repeated")) == (0, 1)
        assert (short[2].pop("accepted"), long[2].pop("accepted")) == (1, 0)
    for _, found, _ in (short, long):
        found.pop("date")
    assert short == long


def test_a_token_is_asked_for_and_a_refusal_says_how(start):
    served = start(token_required=True)
    with Connection(served) as connection:
        connection.send(head("/api/monitors/m/events", GOOD) + GOOD)
        status, headers, body = connection.answer()
    assert (status, headers["www-authenticate"], body["error"]["code"]) == (401, "Bearer", "unauthorized")


@pytest.mark.slow
def test_requests_in_one_breath_are_answered_in_order_however_many_are_refused(served):
    bad = head("/api/monitors/nobody/events", b"") * 20
    good = head("/api/monitors/m/events", GOOD) + GOOD
    with Connection(served) as connection:
        connection.send((bad + good) * 100)
        statuses = [connection.answer()[0] for _ in range(2_100)]
    assert statuses == ([404] * 20 + [200]) * 100
    assert served.http.get("/api/monitors/m").json()["events"] == 200


def test_a_body_may_come_in_pieces_and_a_client_may_go_before_its_answer(served):
    request = head("/api/monitors/m/events", GOOD) + GOOD
    for cut in (len(request) - len(GOOD), len(request) - 5):
        with Connection(served) as connection:
            connection.send(request[:cut])
            connection.send(request[cut:])
            assert connection.answer()[2]["accepted"] == 2
            connection.send(request[:cut])  # and nothing more
        with Connection(served) as connection:
            connection.send(request)
    with Connection(served) as connection:
        connection.send(request)
        assert connection.answer()[0] == 200
    assert served.http.get("/healthz").status_code == 200


def test_a_connection_that_is_to_be_closed_is(served):
    for request in (
        head("/api/monitors/m/events", GOOD, "Connection: close"),
        head("/api/monitors/m/events", GOOD, version="1.0"),
    ):
        with Connection(served) as connection:
            connection.send(request + GOOD)
            assert connection.answer()[1]["connection"] == "close"
            assert connection.socket.recv(1) == b""


def test_large_and_packed_bodies_are_taken(served):
    many = json.dumps({"y_true": [1] * 300_000, "y_pred": [1] * 300_000}).encode()
    packed = gzip.compress(GOOD)
    with Connection(served) as connection:
        connection.send(head("/api/monitors/m/events", many) + many)
        assert connection.answer()[2]["accepted"] == 300_000
        connection.send(head("/api/monitors/m/events", packed, "Content-Encoding: gzip") + packed)
        assert connection.answer()[2]["accepted"] == 2


def test_bodies_that_take_a_while_to_read_are_read_few_at_a_time(served, monkeypatch):
    reading, most = [], []

    def slowly(*arguments):
        reading.append(1)
        most.append(len(reading))
        time.sleep(0.05)
        reading.pop()
        return read_table(*arguments)

    monkeypatch.setattr("fourrates.serve.ingest.read_table", slowly)
    packed = gzip.compress(GOOD)
    connections = [Connection(served) for _ in range(8)]
    for connection in connections:
        connection.send(head("/api/monitors/m/events", packed, "Content-Encoding: gzip") + packed)
    for connection in connections:
        with connection:
            assert connection.answer()[2]["accepted"] == 2
    assert max(most) == AT_ONCE


def test_bodies_that_never_end_take_bounded_memory_and_shut_nobody_out(start, monkeypatch):
    in_flight = InFlight(IN_FLIGHT * 1_000_000)
    monkeypatch.setattr("fourrates.serve.ingest.InFlight", lambda _: in_flight)
    served = start(max_body=1_000_000)
    served.http.put("/api/monitors/m", json={})
    body = GOOD + b" " * 900_000
    connections = [Connection(served) for _ in range(24)]
    for connection in connections:
        connection.send(head("/api/monitors/m/events", body) + body[:-1])
    end = time.monotonic() + 10
    while in_flight.held < 1_500_000 and time.monotonic() < end:
        time.sleep(0.01)
    assert served.http.post("/api/monitors/m/events", content=GOOD).json()["accepted"] == 2
    assert 1_500_000 <= in_flight.held <= in_flight.most
    for connection in connections:
        connection.socket.close()
    while in_flight.held and time.monotonic() < end:
        time.sleep(0.01)
    assert in_flight.held == 0


def test_a_defect_is_told_as_one_and_the_connection_goes_on(served, monkeypatch):
    monkeypatch.setattr("fourrates.serve.ingest.read_table", lambda *_: 1 / 0)
    with Connection(served) as connection:
        for _ in range(2):
            connection.send(head("/api/monitors/m/events", GOOD) + GOOD)
            status, _, body = connection.answer()
            assert (status, body["error"]["code"]) == (500, "defect")


def test_requests_are_counted_and_timed(served):
    with Connection(served) as connection:
        connection.send(head("/api/monitors/m/events", GOOD) + GOOD)
        connection.answer()
    line = (
        'fourrates_request_duration_seconds_count{method="POST",route="/api/monitors/{name}/events",status="2xx"} 1.0'
    )
    assert line in served.http.get("/metrics").text
