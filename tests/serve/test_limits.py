"""What is too large or too slow, against a real server on the loopback."""

import asyncio
import json
import socket
import threading
import time

import pytest

pytest.importorskip("starlette")
from served import Served
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse

from fourrates.serve.access import Access
from fourrates.serve.errors import ApiError
from fourrates.serve.front import Call, Front
from fourrates.serve.ingest import read_body
from fourrates.serve.limits import MAX_HEAD, uvicorn_options
from fourrates.serve.metrics import Metrics
from fourrates.serve.tokens import Tokens

MAX_BODY = 100_000


async def size(request):
    try:
        return JSONResponse({"size": len(await read_body(request.headers, request.receive, MAX_BODY))})
    except ApiError as error:
        return error.response()


async def ignore(request):
    return PlainTextResponse("not read")


async def pour(request):
    async def forever():
        while True:
            yield bytes(1 << 16)
            await asyncio.sleep(0)

    return StreamingResponse(forever())


async def drip(request):
    async def slowly():
        for _ in range(20):
            yield b"."
            await asyncio.sleep(0.1)

    return StreamingResponse(slowly())


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    calls = [
        Call("POST", "/size", size),
        Call("POST", "/ignore", ignore),
        Call("GET", "/pour", pour),
        Call("GET", "/drip", drip),
    ]
    app = Front(calls, Access(Tokens(folder), required=False, loopback=False), Metrics(lambda: None, dict))
    quick = {"head_seconds": 0.5, "body_seconds": 0.5, "body_rate": 50_000.0, "write_seconds": 0.5, "look": 0.05}
    with Served(app, **uvicorn_options(MAX_BODY, **quick)) as served:
        yield served


class Connection:
    def __init__(self, served):
        self.socket = socket.create_connection(("127.0.0.1", served.port), timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def rest(self):
        """Everything until the server closes; a reset counts as that."""
        data = b""
        try:
            while more := self.socket.recv(1 << 16):
                data += more
        except ConnectionError:
            pass
        return data


def head(target, *headers, method="POST"):
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def code_of(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]


def ends_within(seconds, connection):
    began = time.monotonic()
    answer = connection.rest()
    assert time.monotonic() - began < seconds
    return answer


def test_a_body_within_the_limit_is_taken_and_the_connection_goes_on(served):
    with Connection(served) as connection:
        for _ in range(3):
            connection.send(head("/size", f"Content-Length: {MAX_BODY}") + bytes(MAX_BODY))
            assert b'{"size":100000}' in connection.socket.recv(1 << 16)


def test_a_body_that_says_it_is_too_large_is_refused_and_the_client_gets_to_know(served):
    with Connection(served) as connection:
        for _ in range(2):  # the connection goes on after it
            connection.send(head("/size", f"Content-Length: {5 * MAX_BODY}") + bytes(5 * MAX_BODY))
            answer = connection.socket.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 413")
            assert code_of(answer) == "too_large"


def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_long(served):
    with Connection(served) as connection:
        connection.send(head("/size", "Transfer-Encoding: chunked"))
        for _ in range(3):
            connection.send(b"%x\r\n" % 50_000 + bytes(50_000) + b"\r\n")
        assert connection.socket.recv(1 << 16).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("length", ["9" * 30, "-1", "1e3", "0x10", "\u0661"])
def test_a_length_that_is_none_is_refused(served, length):
    with Connection(served) as connection:
        connection.send(head("/size", f"Content-Length: {length}"))
        assert connection.socket.recv(1 << 16)[9:12] in (b"400", b"413")


def test_who_waits_for_leave_to_send_a_large_body_is_refused_and_the_connection_closed(served):
    with Connection(served) as connection:
        connection.send(head("/size", f"Content-Length: {5 * MAX_BODY}", "Expect: 100-continue"))
        assert ends_within(2, connection).startswith(b"HTTP/1.1 413")


def test_an_endless_body_is_cut_off_even_where_nobody_reads_it(served):
    with Connection(served) as connection:
        connection.send(head("/ignore", f"Content-Length: {10**12}"))
        sent = pushed(connection, bytes(1 << 20), 1 << 30)
    assert sent < 40 << 20  # the limit, what is read after an answer, and the buffers of the system


@pytest.mark.slow
def test_a_head_that_drips_in_is_ended(served):
    with Connection(served) as connection:
        connection.send(b"GET / HTTP/1.1\r\nX: ")
        dripping = threading.Thread(target=drip_into, args=(connection, time.monotonic() + 5))
        dripping.start()
        assert ends_within(2, connection)[9:12] in (b"408", b"")  # what it sends on may reset the connection
        dripping.join()


@pytest.mark.slow
def test_the_end_of_a_slow_head_is_told(served):
    with Connection(served) as connection:
        connection.send(b"POST /size HT")
        answer = ends_within(2, connection)
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert code_of(answer) == "too_slow"


@pytest.mark.slow
def test_a_body_that_drips_in_is_ended(served):
    with Connection(served) as connection:
        connection.send(head("/size", "Content-Length: 1000"))
        stop = time.monotonic() + 5
        dripping = threading.Thread(target=drip_into, args=(connection, stop))
        dripping.start()
        assert ends_within(2, connection).startswith(b"HTTP/1.1 408")
        dripping.join()


def pushed(connection, data, most):
    """Bytes that can be sent before the server ends the connection."""
    sent = 0
    try:
        while sent < most:
            connection.send(data)
            sent += len(data)
    except ConnectionError:
        pass
    return sent


def drip_into(connection, stop):
    try:
        while time.monotonic() < stop:
            connection.send(b".")
            time.sleep(0.02)
    except OSError:
        pass


@pytest.mark.slow
def test_a_slow_but_steady_body_is_taken(served):
    with Connection(served) as connection:
        connection.send(head("/size", f"Content-Length: {MAX_BODY}"))
        for _ in range(20):  # at 100 kB a second, twice the least, for a second: twice what a body has at first
            connection.send(bytes(MAX_BODY // 20))
            time.sleep(0.05)
        assert b'{"size":100000}' in connection.socket.recv(1 << 16)


@pytest.mark.slow
def test_a_body_that_stops_after_its_answer_is_ended_without_a_second_answer(served):
    with Connection(served) as connection:
        connection.send(head("/ignore", "Content-Length: 1000") + b"some")
        assert ends_within(2, connection).count(b"HTTP/1.1") == 1


@pytest.mark.slow
def test_a_connection_that_says_nothing_is_ended(served):
    with Connection(served) as connection:
        assert ends_within(2, connection) == b""


@pytest.mark.slow
def test_a_client_that_does_not_read_is_left(served):
    with Connection(served) as connection:
        connection.send(head("/pour", method="GET"))
        time.sleep(2)  # the buffers are full, and have been for longer than is allowed
        began, total = time.monotonic(), 0
        try:
            while more := connection.socket.recv(1 << 20):
                total += len(more)
                assert time.monotonic() - began < 5, "it still pours"
        except ConnectionError:
            pass


@pytest.mark.slow
def test_a_long_answer_that_is_read_is_not_ended(served):
    with Connection(served) as connection:
        connection.send(head("/drip", "Connection: close", method="GET"))
        assert connection.rest().count(b".\r\n") == 20


def test_a_head_that_is_too_long_or_has_too_many_headers_is_refused(served):
    with Connection(served) as connection:
        connection.send(b"GET /drip HTTP/1.1\r\nX: ")
        assert pushed(connection, b"x" * MAX_HEAD, 1_000 * MAX_HEAD) < 100 * MAX_HEAD
    with Connection(served) as connection:
        connection.send(head("/drip", *[f"X-{i}: y" for i in range(200)], method="GET"))
        assert connection.rest().startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "line", [b"GARBAGE", b"GET / HTTP/9.9", b"\x16\x03\x01\x02\x00\x01", b"GET /\xff\xfe HTTP/1.1"]
)
def test_what_is_not_http_is_refused(served, line):
    with Connection(served) as connection:
        connection.send(line + b"\r\nHost: x\r\n\r\n")
        assert ends_within(2, connection)[9:12] in (b"400", b"404")


def test_requests_in_one_breath_are_answered_in_order(served):
    with Connection(served) as connection:
        connection.send(b"".join(head("/size", f"Content-Length: {i}") + bytes(i) for i in range(5)))
        answer = b""
        while answer.count(b'{"size":') < 5:
            answer += connection.socket.recv(1 << 16)
        assert [int(part.partition(b"}")[0]) for part in answer.split(b'{"size":')[1:]] == list(range(5))


def test_every_answer_tells_browsers_to_trust_nothing(served):
    for request in (head("/nowhere", method="GET"), head("/size", "Content-Length: 0")):
        with Connection(served) as connection:
            connection.send(request)
            answer = connection.socket.recv(1 << 16).lower()
        for line in (b"x-content-type-options: nosniff", b"default-src 'none'", b"frame-ancestors 'none'"):
            assert line in answer
        assert b"server:" not in answer
        assert b"access-control" not in answer
