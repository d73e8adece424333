"""Whatever a server, or a proxy before it, answers: every row is acknowledged, on disk, or counted as dropped."""

import json
import time

import pytest
from receiver import Receiver

import fourrates as fr
from fourrates import disk_queue
from fourrates.disk_queue import DEAD, DiskQueue

ROWS = 20


def answer(status, body=b"", *headers, length=None):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def counts(accepted=ROWS, repeated=0, rejected=0):
    return json.dumps({"accepted": accepted, "repeated": repeated, "rejected": rejected}).encode()


def error(code):
    return json.dumps({"error": {"code": code, "message": "no"}}).encode()


def drip(connection):
    for byte in answer(200, counts()):
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def late(connection):
    time.sleep(0.2)
    connection.sendall(answer(200, counts()))


ACKNOWLEDGED = {
    "counts": answer(200, counts()),
    "some repeated, some rejected": answer(200, counts(10, 7, 3)),
    "201": answer(201, counts()),
    "late": late,
    "without a length": b"HTTP/1.0 200 OK\r\n\r\n" + counts(),
}
WAITING = {
    "login page": answer(200, b"<html>Please sign in</html>"),
    "empty": answer(200),
    "204": b"HTTP/1.1 204 X\r\n\r\n",
    "other JSON": answer(200, b'{"status": "ok"}'),
    "a list": answer(200, b"[20, 0, 0]"),
    "negative": answer(200, counts(ROWS + 5, 0, -5)),
    "too few": answer(200, counts(ROWS - 1)),
    "too many": answer(200, counts(ROWS + 1)),
    "not whole": answer(200, b'{"accepted": 20.0, "repeated": 0, "rejected": 0}'),
    "words": answer(200, b'{"accepted": "20", "repeated": 0, "rejected": 0}'),
    "truth values": answer(200, b'{"accepted": 20, "repeated": false, "rejected": false}'),
    "deep JSON": answer(200, b"[" * 100_000),
    "301": answer(301, b"", "Location: https://127.0.0.1/"),
    "307": answer(307, b"", "Location: http://127.0.0.1:9/"),
    "401": answer(401, error("unauthorized")),
    "403": answer(403, error("forbidden")),
    "404 of an ingress": answer(404, b"default backend - 404"),
    "404 of another server": answer(404, error("not_found")),
    "421": answer(421, error("foreign_host")),
    "429": answer(429, b"", "Retry-After: 999999999999"),
    "500": answer(500),
    "503": answer(503, b"", "Retry-After: soon"),
    "hung up": b"",
    "cut in the head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "cut in the body": answer(200, counts()[:10], length=60),
    "another protocol": b"SSH-2.0-OpenSSH\r\n\r\n",
    "100 for ever": b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000,
    "199": b"HTTP/1.1 199 X\r\n\r\n",
    "no answer": lambda connection: time.sleep(2),
    "an answer that drips": drip,
}
REFUSED = {
    "400": answer(400, error("bad_json")),
    "404 without the monitor": answer(404, error("no_monitor")),
    "405": answer(405),
    "413 for a single row": answer(413, b"too large"),
    "422": answer(422, error("bad_label")),
}


def log_to(receiver, folder):
    client = fr.Client(receiver.url.removesuffix("/hook"), folder=folder, wait=0.01, timeout=0.5)
    client.log("m", id=list(range(ROWS)), y_pred=[1] * ROWS)
    return client


def on_disk(folder, status=disk_queue.WAITING):
    queue = DiskQueue(folder / "batches.queue")
    ids = [id for entry in queue.entries(status) for id in json.loads(entry.body.split(b"\n")[1])["id"]]
    queue.close()
    return ids


@pytest.mark.parametrize("name", ACKNOWLEDGED)
def test_counts_that_add_up_are_an_acknowledgement(receiver, tmp_path, name):
    receiver.default = ACKNOWLEDGED[name]
    client = log_to(receiver, tmp_path)
    assert client.flush(5)
    client.close(0)
    assert client.sent + client.repeated + client.rejected == ROWS
    assert (client.waiting, client.dropped, client.refused, on_disk(tmp_path)) == (0, 0, 0, [])


@pytest.mark.parametrize("name", WAITING)
def test_what_is_no_acknowledgement_leaves_the_rows_on_disk(receiver, tmp_path, caplog, name):
    receiver.default = WAITING[name]
    client = log_to(receiver, tmp_path)
    receiver.wait_for(1)
    assert not client.flush(0.2)
    assert client.close(0) == ROWS
    assert on_disk(tmp_path) == list(range(ROWS))
    assert (client.sent, client.repeated, client.rejected, client.dropped, client.refused) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("name", ["login page", "404 of an ingress", "no answer", "an answer that drips"])
@pytest.mark.slow
def test_they_are_sent_and_counted_once_the_server_answers(tmp_path, caplog, name):
    receiver = Receiver()
    receiver.answers = [WAITING[name]]
    receiver.default = answer(200, counts())
    client = log_to(receiver, tmp_path)
    assert client.flush(10)
    client.close()
    receiver.close()
    assert (client.sent, on_disk(tmp_path)) == (ROWS, [])
    assert len({request.headers["idempotency-key"] for request in receiver.requests}) == 1
    assert "rows wait in" in caplog.text


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_for_good_is_kept_counted_and_logged(receiver, tmp_path, caplog, name):
    receiver.default = REFUSED[name]
    client = log_to(receiver, tmp_path)
    assert client.flush(5)
    client.close(0)
    assert sorted(on_disk(tmp_path, DEAD)) == list(range(ROWS))
    assert (client.refused, client.dropped, client.sent, on_disk(tmp_path)) == (ROWS, 0, 0, [])
    assert f"the batch stays in {tmp_path}" in caplog.text


def test_refused_batches_beyond_their_room_are_dropped_logged_and_counted(receiver, tmp_path, caplog):
    receiver.default = REFUSED["422"]
    url = receiver.url.removesuffix("/hook")
    client = fr.Client(url, folder=tmp_path, limit=1_000)
    for number in range(20):
        client.log("m", id=[f"{number}-{row}" for row in range(5)], y_pred=[1] * 5)
        assert client.flush(5)
    client.close(0)
    kept = len(on_disk(tmp_path, DEAD))
    assert 5 < kept < 50
    assert (client.refused, client.dropped) == (100, 100 - kept)
    assert f"{client.dropped} rows were dropped" in caplog.text
