"""The webhook: signed, no redirects, one deadline for the whole call, any answer survived."""

import json
import socket
import time

import pytest

from fourrates.alerts import Failure, SignatureError, Webhook, verify


def alert(id="a1", **payload):
    return {"id": id, "text": "hello", **payload}


def test_an_alert_is_posted_with_its_id_its_headers_and_a_signature(receiver):
    url = receiver.url.replace("http://", "http://me:pass@")
    Webhook(url, secret="s3cret").deliver(alert(stream="fraud"))
    (request,) = receiver.requests
    assert (request.method, request.target) == ("POST", "/hook")
    assert json.loads(request.body) == {"id": "a1", "text": "hello", "stream": "fraud"}
    assert request.headers["authorization"] == "Basic bWU6cGFzcw=="
    assert request.headers["content-type"] == "application/json"
    assert verify("s3cret", request.headers, request.body) == "a1"


def test_a_receiver_refuses_what_was_changed_replayed_or_signed_by_another(receiver):
    Webhook(receiver.url, secret="whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz").deliver(alert())
    (request,) = receiver.requests
    good = {"secret": b"012345678901234567890123", "headers": request.headers, "body": request.body}
    assert verify(**good) == "a1"
    for changed in (
        {"secret": "another"},
        {"body": request.body + b" "},
        {"headers": request.headers | {"webhook-id": "a2"}},
        {"headers": request.headers | {"webhook-timestamp": str(int(time.time()) - 100)}},
        {"headers": {}},
        {"headers": request.headers | {"webhook-signature": "v1,é"}},
    ):
        with pytest.raises(SignatureError):
            verify(**good | changed)
    with pytest.raises(SignatureError, match="old"):
        verify(**good, now=time.time() + 1000)


@pytest.mark.slow
def test_an_address_that_swallows_everything_leaves_time_for_the_next_one(receiver, monkeypatch):
    """A name may have an IPv6 address that leads nowhere, and an IPv4 address that works."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        with socket.create_connection(deaf.getsockname()):  # the queue is full: whoever comes now waits
            found = [
                (socket.AF_INET, socket.SOCK_STREAM, 0, "", address)
                for address in (deaf.getsockname(), ("127.0.0.1", receiver.port))
            ]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
            Webhook("http://two.example/hook", deadline=2.0).deliver(alert())
    assert receiver.ids() == ["a1"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(receiver, status):
    receiver.answers = [f"HTTP/1.1 {status} Moved\r\nLocation: {receiver.url}2\r\nContent-Length: 0\r\n\r\n".encode()]
    with pytest.raises(Failure, match="redirects are not followed"):
        Webhook(receiver.url).deliver(alert())
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n\r\n",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/9.9 \xff\xfe\r\n\r\n",
        b"HTTP/1.1 500 \x1b[2J\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 " + b"x" * 70_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
    ],
)
def test_whatever_is_not_a_success_in_http_is_a_failure(receiver, answer):
    receiver.answers = [answer]
    with pytest.raises((Failure, OSError, ValueError)) as raised:
        Webhook(receiver.url, deadline=3).deliver(alert())
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize(
    "body", [b"Content-Length: 10\r\n\r\nshort", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"\r\n" + b"x" * 10**6]
)
def test_a_success_is_one_whatever_its_body(receiver, body):
    receiver.answers = [b"HTTP/1.1 201 Created\r\n" + body]
    Webhook(receiver.url).deliver(alert())


def drip(head, each):
    def answer(connection):
        connection.sendall(head)
        for _ in range(200):
            time.sleep(0.05)
            connection.sendall(each)

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [drip(b"", b"H"), drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), drip(b"HTTP/1.1 100 C\r\n\r\n", b"")]
)
def test_the_deadline_is_for_the_whole_call_however_slowly_the_answer_drips(receiver, answer):
    receiver.answers = [answer]
    start = time.monotonic()
    with pytest.raises(Failure, match=r"0\.6 s"):
        Webhook(receiver.url, deadline=0.6).deliver(alert())
    assert 0.5 < time.monotonic() - start < 1.5


@pytest.mark.slow
def test_a_body_that_drips_does_not_hold_up_a_success(receiver):
    receiver.answers = [drip(b"HTTP/1.1 200 OK\r\n\r\n", b"x")]
    start = time.monotonic()
    Webhook(receiver.url, deadline=5).deliver(alert())
    assert time.monotonic() - start < 2.5


def test_a_server_that_accepts_and_says_nothing_is_left_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(Failure, match=r"within 0\.4 s|longer than 0\.4 s"):
            Webhook(f"http://127.0.0.1:{silent.getsockname()[1]}", deadline=0.4).deliver(alert())
        assert time.monotonic() - start < 1.5


@pytest.mark.parametrize(
    "url", ["example.org", "ftp://example.org", "http://", "http://x:99999/", "http://a b/", "http://é/", "http://x/\n"]
)
def test_an_address_that_is_none_is_refused_at_once(url):
    with pytest.raises(ValueError, match="webhook"):
        Webhook(url)


def test_secrets_in_the_address_are_not_in_its_name(receiver):
    hook = Webhook("http://me:pass@127.0.0.1/services/T0/TOKEN?key=KEY")
    assert not any(secret in hook.name for secret in ("pass", "TOKEN", "KEY"))
    assert hook.headers["Authorization"] == "Basic bWU6cGFzcw=="
