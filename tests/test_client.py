"""The client, against a real server on the loopback that counts every key once, as a monitor does."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from receiver import Receiver
from served import Served

import fourrates as fr
from fourrates.disk_queue import DEAD, DiskQueue, Entry

pytest.importorskip("starlette")
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


class Monitor:
    """What was sent, by key; `answers` are given first, and `lost` answers are lost after the batch was taken."""

    def __init__(self):
        self.batches, self.requests, self.answers, self.lost, self.most = {}, [], [], 0, 10**9
        self.app = Starlette(routes=[Route("/api/monitors/{name}/{kind}", self.take, methods=["POST"])])

    async def take(self, request):
        body = await request.body()
        key = request.headers["idempotency-key"]
        self.requests.append((request.path_params["name"], request.path_params["kind"], dict(request.headers)))
        if self.answers:
            return self.answers.pop(0)
        columns = json.loads(body)
        if len(next(iter(columns.values()))) > self.most:
            return refused(413, "too many rows")
        known = key in self.batches
        self.batches[key] = (request.path_params["name"], request.path_params["kind"], columns)
        if self.lost:
            self.lost -= 1
            return JSONResponse({"error": {"code": "lost", "message": "taken, but the answer was lost"}}, 503)
        rows = len(next(iter(columns.values())))
        return JSONResponse({"accepted": 0 if known else rows, "repeated": rows if known else 0, "rejected": 0})

    def column(self, name, kind=None):
        return [value for _, sent, columns in self.batches.values() if kind in (None, sent) for value in columns[name]]


@pytest.fixture
def monitor():
    return Monitor()


@pytest.fixture
def served(monitor):
    with Served(monitor.app) as served:
        yield served


def refused(code=422, message="label 7 at row 3 is not one of (0, 1)"):
    return JSONResponse({"error": {"code": "bad_label", "message": message}}, code)


def test_pairs_predictions_and_labels_arrive_as_columns(monitor, served, tmp_path):
    with fr.Client(served.url, "secret", folder=tmp_path) as client:
        client.log("fraud", y_true=1, y_pred=0)
        client.log("fraud", y_true=np.array([0, 1]), y_pred=[0, 1])
        client.log("fraud", id="a", score=np.float64(0.25), by={"country": "FR"}, time=datetime(2026, 1, 2, tzinfo=UTC))
        client.log("fraud", id=["b", "c"], score=[0.5, 1], by={"country": "DE"}, time=["2026-01-03", "2026-01-04"])
        client.log("fraud", id=("a", "b"), y_true=(True, False))
        assert client.flush()
    assert sorted(monitor.batches.values(), key=str) == [
        ("fraud", "events", {"y_true": [1, 0, 1], "y_pred": [0, 0, 1]}),
        ("fraud", "labels", {"y_true": [True, False], "id": ["a", "b"]}),
        (
            "fraud",
            "predictions",
            {
                "score": [0.25, 0.5, 1],
                "id": ["a", "b", "c"],
                "time": ["2026-01-02T00:00:00+00:00", "2026-01-03", "2026-01-04"],
                "by": {"country": ["FR", "DE", "DE"]},
            },
        ),
    ]
    assert {headers["authorization"] for _, _, headers in monitor.requests} == {"Bearer secret"}
    assert (client.sent, client.waiting) == (8, 0)


def test_a_label_never_overtakes_its_prediction(monitor, served, tmp_path):
    with fr.Client(served.url, folder=tmp_path) as client:
        client.log("m", id=1, y_true=1)  # of an earlier prediction
        client.log("m", id=2, y_pred=1)
        client.log("m", id=2, y_true=0)
    assert [kind for _, kind, _ in monitor.requests] == ["predictions", "labels"]


@pytest.mark.slow
def test_rows_go_out_when_a_batch_is_full_or_has_waited(monitor, served, tmp_path):
    with fr.Client(served.url, folder=tmp_path, batch=10, wait=60) as client:
        for number in range(10):
            client.log("m", y_true=number % 2, y_pred=1)
        wait_for(lambda: len(monitor.column("y_true")) == 10)
        for number in range(5):
            client.log("m", y_true=number % 2, y_pred=1)
        time.sleep(0.5)
        assert len(monitor.column("y_true")) == 10
    assert len(monitor.column("y_true")) == 15
    with fr.Client(served.url, folder=tmp_path, wait=0.05) as client:
        client.log("late", y_true=1, y_pred=1)
        wait_for(lambda: len(monitor.column("y_true")) == 16)


@pytest.mark.slow
def test_what_is_logged_while_the_server_is_away_arrives_in_order_when_it_is_back(monitor, tmp_path, caplog):
    with Served(monitor.app) as served:
        port = served.port
    with fr.Client(served.url, folder=tmp_path, batch=10, wait=0.01) as client:
        for number in range(50):
            client.log("m", id=number, y_pred=1)
            time.sleep(0.002)
        assert not client.flush(0.1)
        wait_for(lambda: on_disk(tmp_path) == 50)
        assert len([record for record in caplog.records if "cannot be reached" in record.message]) == 1
        with Served(monitor.app, port):
            assert client.flush(10)
    assert monitor.column("id") == list(range(50))
    assert on_disk(tmp_path) == 0
    assert client.dropped == 0


@pytest.mark.slow
def test_what_one_process_left_is_sent_by_the_next(monitor, tmp_path):
    with Served(monitor.app) as served:
        port = served.port
    client = fr.Client(served.url, folder=tmp_path)
    client.log("m", y_true=[1, 0], y_pred=[1, 1])
    assert client.close(0.1) == 2
    with Served(monitor.app, port), fr.Client(served.url, folder=tmp_path) as client:
        client.log("m", y_true=[0], y_pred=[0])
    assert monitor.column("y_true") == [1, 0, 0]


@pytest.mark.slow
def test_a_batch_whose_answer_was_lost_counts_once(monitor, served, tmp_path):
    monitor.lost = 2
    with fr.Client(served.url, folder=tmp_path) as client:
        client.log("m", y_true=[1, 0, 1], y_pred=[1, 1, 1])
        assert client.flush()
    assert len(monitor.requests) == 3
    assert len(monitor.batches) == 1
    assert (client.sent, client.repeated) == (0, 3)


@pytest.mark.slow
def test_an_overloaded_server_is_left_alone_for_as_long_as_it_asks(monitor, served, tmp_path):
    monitor.answers = [JSONResponse({}, 429, {"Retry-After": "2"})]
    with fr.Client(served.url, folder=tmp_path, wait=0.01) as client:
        client.log("m", y_true=1, y_pred=1)
        wait_for(lambda: monitor.requests)
        began = time.monotonic()
        wait_for(lambda: monitor.batches)
        assert time.monotonic() - began > 1.5


def test_a_refused_batch_is_set_aside_and_the_next_goes_on(monitor, served, tmp_path, caplog):
    monitor.answers = [refused()]
    with fr.Client(served.url, folder=tmp_path, bad="reject") as client:
        client.log("m", y_true=7, y_pred=1)
        assert client.flush()
        client.log("m", y_true=1, y_pred=1)
    assert client.refused == 1
    assert monitor.column("y_true") == [1]
    (dead,) = DiskQueue(tmp_path / "batches.queue").entries(DEAD)
    assert b'"y_true": [7]' in dead.body
    assert "label 7 at row 3" in dead.problem
    assert dead.problem in caplog.text


def test_a_revoked_token_keeps_everything_on_disk_until_there_is_a_new_one(monitor, served, tmp_path):
    monitor.answers = [refused(401, "no such token")] * 2
    client = fr.Client(served.url, "old", folder=tmp_path)
    client.log("m", y_true=1, y_pred=1)
    assert client.close(0.3) == 1
    monitor.answers.clear()
    with fr.Client(served.url, "new", folder=tmp_path) as client:
        client.log("m", y_true=0, y_pred=1)
    assert monitor.column("y_true") == [1, 0]
    assert b"new" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_memory_is_bounded_and_what_is_dropped_is_counted(tmp_path):
    receiver = Receiver()
    receiver.default = lambda connection: time.sleep(3)  # takes it, and never answers
    client = fr.Client(receiver.url.removesuffix("/hook"), folder=tmp_path, limit=10_000, wait=0.01, timeout=2)
    client.log("m", y_true=1, y_pred=1)
    receiver.wait_for(1)
    for _ in range(2_000):
        client.log("m", y_true=[1] * 10, y_pred=[1] * 10)
    # Ten rows are 56 bytes in memory and 60 on disk, where the batch that is on its way (up to 12,000 in all) stays.
    assert client.waiting <= 10 * (10_000 // 56 + 12_000 // 60)
    client.flush(0)  # nothing moves from memory to disk, and is dropped there, between the two numbers
    assert client.dropped + client.waiting == 20_001
    began = time.monotonic()
    client.close(0.1)
    assert time.monotonic() - began < 1.5, "closing does not wait for an answer that does not come"
    receiver.close()
    with sqlite3.connect(tmp_path / "batches.queue") as queue:
        assert queue.execute("SELECT sum(length(body)) FROM entries").fetchone()[0] < 12_000
    queue.close()


def test_the_folder_is_bounded_too_and_the_oldest_go_first(tmp_path, caplog):
    client = fr.Client("http://127.0.0.1:9", folder=tmp_path, limit=1_000)
    for number in range(20):
        client.log("m", id=f"{number:02d}", y_pred="x" * 60)
        client.flush(0)
    client.close(0)
    kept = [json.loads(entry.body.split(b"\n")[1])["id"][0] for entry in entries(tmp_path)]
    assert kept[1:] == [f"{number:02d}" for number in range(21 - len(kept), 20)]  # the first may be on its way
    assert 3 < len(kept) < 10
    assert client.dropped == 20 - len(kept)
    assert "rows were dropped" in caplog.text


@pytest.mark.parametrize("content", [b"", b"{}", b"y_true,y_pred\n" * 500, b"SQLite format 3\0" + bytes(4096)])
def test_a_file_that_is_no_queue_is_set_aside_and_logged(monitor, served, tmp_path, caplog, content):
    (tmp_path / "batches.queue").write_bytes(content)
    (tmp_path / "notes.txt").write_text("not ours")
    with fr.Client(served.url, folder=tmp_path) as client:
        client.log("m", y_true=1, y_pred=1)
    assert monitor.column("y_true") == [1]
    aside = list(tmp_path.glob("batches.queue.damaged-*"))
    assert [path.read_bytes() for path in aside] == ([content] if content else [])
    assert all(path.name in caplog.text for path in aside)
    assert (tmp_path / "notes.txt").exists()


def test_a_queue_damaged_while_it_is_used_is_set_aside_and_no_new_row_is_lost(monitor, tmp_path, caplog):
    client = fr.Client("http://127.0.0.1:9", folder=tmp_path)
    client.log("m", y_true=[1] * 2_000, y_pred=[0] * 2_000)
    client.close(0)
    path = tmp_path / "batches.queue"
    path.write_bytes(path.read_bytes()[:4096] + os.urandom(path.stat().st_size - 4096))
    client = fr.Client("http://127.0.0.1:9", folder=tmp_path)
    client.log("m", y_true=[1, 0], y_pred=[1, 1])
    assert client.close(0) == 2
    assert on_disk(tmp_path) == 2
    assert "damaged" in caplog.text


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="limits of a process")
def test_rows_reach_the_server_where_the_disk_is_full(monitor, served, tmp_path):
    """Files may not grow in the process: as on a full disk, nothing can be put there."""
    program = f"""
import resource, signal
import fourrates as fr
client = fr.Client({served.url!r}, folder={str(tmp_path)!r}, wait=0.01)
client.log("m", id=0, y_pred=1)
assert client.flush()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
for number in range(1, 50):
    client.log("m", id=number, y_pred=1)
assert client.flush()
client.close()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True)
    assert monitor.column("id") == list(range(50))


def test_rows_that_are_dropped_are_not_dropped_in_silence(tmp_path, caplog):
    client = fr.Client("http://127.0.0.1:9", folder=tmp_path, wait=60, limit=1_000)
    for number in range(400):
        client.log("fraud", y_true=[1], y_pred=[0], id=[f"order-{number}"])
    client.close(0.1)
    told = [record.getMessage() for record in caplog.records if "dropped" in record.getMessage()]
    assert client.dropped > 100
    assert 1 < len(told) < 12, "the first, and then each time they are twice as many"
    assert told[0].endswith("1 rows were dropped so far")


def test_a_batch_in_the_folder_goes_nowhere_but_to_a_monitor(monitor, served, tmp_path, caplog):
    """Who can write into the folder still cannot make the client post elsewhere, or smuggle a header."""
    queue = DiskQueue(tmp_path / "batches.queue")
    for number, path in enumerate(["/admin", "//evil/api/monitors/x", "/api/monitors/x HTTP/1.1\r\nX: y", "\xff"]):
        queue.put([Entry(f"forged{number}", served.url, path.encode() + b"\n{}")])
    queue.close()
    with fr.Client(served.url, folder=tmp_path) as client:
        client.log("m", y_true=1, y_pred=1)
    assert len(monitor.requests) == 1
    assert client.refused == len(DiskQueue(tmp_path / "batches.queue").entries(DEAD)) == 4


def test_batches_for_another_address_stay_where_they_are(monitor, served, tmp_path, caplog):
    with fr.Client("http://127.0.0.1:9", folder=tmp_path) as away:
        away.log("m", y_true=[1, 0], y_pred=[1, 0])
        away.flush(0)
    with fr.Client(served.url, folder=tmp_path) as client:
        client.log("m", y_true=[1], y_pred=[0])
    assert monitor.column("y_true") == [1]
    assert on_disk(tmp_path) == 2
    assert "for other addresses: http://127.0.0.1:9" in caplog.text


def test_what_lies_in_the_folder_is_for_its_owner_alone(monitor, served, tmp_path):
    tmp_path.chmod(0o755)
    monitor.answers = [refused()]
    client = fr.Client(served.url, folder=tmp_path)
    client.log("m", y_true=7, y_pred=1)
    client.flush()
    modes = {path.name[:20]: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()}
    assert len(modes) == 3, "the queue, its log and index"
    assert set(modes.values()) == {0o600}
    client.close()


def test_one_call_of_a_million_rows_is_divided(monitor, served, tmp_path):
    with fr.Client(served.url, folder=tmp_path, batch=100_000) as client:
        assert client.log("m", y_true=[1, 0] * 600_000, y_pred=[1] * 1_200_000) == 1_200_000
        assert client.flush(60)
    assert client.sent == 1_200_000
    assert monitor.column("y_true") == [1, 0] * 600_000
    assert len(monitor.batches) == 12


def test_a_batch_that_is_too_large_is_divided_and_each_row_counts_once(monitor, tmp_path):
    monitor.most = 70
    with Served(monitor.app) as served, fr.Client(served.url, folder=tmp_path) as client:
        client.log("m", id=list(range(1_000)), y_pred=[1.5] * 1_000, by={"country": "FR"})
        client.log("m", id=1_000, y_pred=1, by={"country": "DE"})
        assert client.flush(20)
    assert monitor.column("id") == list(range(1_001))
    assert monitor.column("y_pred") == [1.5] * 1_000 + [1]
    assert (client.sent, client.refused) == (1_001, 0)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "needs y_true, y_pred or score"),
        ({"y_true": 1}, "a label alone needs an id"),
        ({"y_pred": 1}, "a prediction alone needs an id"),
        ({"y_true": [1, 0], "y_pred": [1]}, "y_pred has 1 values, y_true has 2"),
        ({"y_true": [1, 0], "y_pred": [1, 0], "by": {"c": ["x"]}}, "by 'c' has 1 values, y_true has 2"),
        ({"y_true": [1], "y_pred": [float("nan")]}, "y_pred nan at position 0"),
        ({"y_true": [1, object()], "y_pred": [1, 1]}, "at position 1 cannot be sent"),
    ],
)
def test_what_cannot_be_sent_is_an_error_where_it_was_logged(tmp_path, columns, said):
    client = fr.Client("http://127.0.0.1:9", folder=tmp_path)
    with pytest.raises(ValueError, match=said):
        client.log("m", **columns)
    assert client.waiting == 0


def test_an_address_or_word_that_makes_no_sense_is_refused():
    for url in ("127.0.0.1:8421", "ftp://x", "http://"):
        with pytest.raises(ValueError, match="does not begin with"):
            fr.Client(url)
    with pytest.raises(ValueError, match="bad 'refuse'"):
        fr.Client("http://x", bad="refuse")
    with pytest.raises(ValueError, match="printable ASCII"):
        fr.Client("http://x", "to\r\nken")


def test_a_name_of_a_monitor_cannot_leave_its_place_in_the_address(monitor, served, tmp_path):
    with fr.Client(served.url, folder=tmp_path) as client:
        for name in ("a b/../c?d#é", "", ".", ".."):
            with pytest.raises(ValueError, match="cannot be the name of a monitor"):
                client.log(name, y_true=1, y_pred=1)
        client.log("a b?d#é", y_true=1, y_pred=1)
    assert [name for name, _, _ in monitor.batches.values()] == ["a b?d#é"]


@pytest.mark.slow
def test_many_threads_may_log_at_once(monitor, served, tmp_path):
    with fr.Client(served.url, folder=tmp_path, batch=100, wait=0.001) as client:
        threads = [
            threading.Thread(target=lambda i=i: [client.log("m", id=f"{i}-{j}", y_pred=1) for j in range(500)])
            for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ids = monitor.column("id")
    assert len(ids) == len(set(ids)) == 4_000


@pytest.mark.slow
def test_a_program_that_ends_has_sent_everything(monitor, served, tmp_path):
    program = f"""
import fourrates as fr
client = fr.Client({served.url!r}, folder={str(tmp_path)!r}, wait=60)
client.log("m", y_true=[1, 0], y_pred=[1, 1])
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert monitor.column("y_true") == [1, 0]


@pytest.mark.slow
def test_a_forked_process_logs_its_own_rows_and_not_those_of_its_parent(monitor, served, tmp_path):
    program = f"""
import os, sys
import fourrates as fr
client = fr.Client({served.url!r}, folder={str(tmp_path)!r}, wait=60)
client.log("m", id="parent", y_pred=1)
child = os.fork()
if child == 0:
    client.log("m", id="child", y_pred=1)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)
    assert sorted(monitor.column("id")) == ["child", "parent"]


def test_importing_fourrates_does_not_import_the_client():
    program = "import sys, fourrates; assert 'fourrates.client' not in sys.modules; fourrates.Client"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_client_that_is_closed_says_so(tmp_path):
    client = fr.Client("http://127.0.0.1:9", folder=tmp_path)
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.log("m", y_true=1, y_pred=1)


def entries(folder):
    """What waits in the folder of a client, oldest first."""
    queue = DiskQueue(folder / "batches.queue")
    found = queue.entries()
    queue.close()
    return found


def on_disk(folder):
    return sum(entry.rows for entry in entries(folder))


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.005)
