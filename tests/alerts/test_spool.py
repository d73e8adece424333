"""The spool: on disk when `put` returns, delivered at least once under one id, across failures and restarts."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest

from fourrates import disk_queue
from fourrates.alerts import Entry, Failure, QueueError, Spool, Webhook
from fourrates.disk_queue import DiskQueue


class RecordingChannel:
    """A channel that fails as often as it is told to, and then keeps what it is given."""

    deadline = 1.0

    def __init__(self, failures=0, name="told", error=Failure, pause=0.0):
        self.failures, self.name, self.error, self.pause = failures, name, error, pause
        self.got, self.tries, self.together, self.most = [], 0, 0, 0

    def deliver(self, alert):
        self.tries += 1
        self.together += 1
        self.most = max(self.most, self.together)
        time.sleep(self.pause)
        self.together -= 1
        if self.tries <= self.failures:
            raise self.error("not now")
        self.got.append(alert)

    def close(self):
        pass


def eventually(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def test_an_alert_is_on_the_disk_when_put_returns(tmp_path):
    blocked = threading.Event()
    channel = RecordingChannel()
    channel.deliver = lambda alert: blocked.wait()
    spool = Spool(tmp_path / "spool", [channel])
    id = spool.put({"kind": "drift", "at": 7})
    with sqlite3.connect(tmp_path / "spool") as other:
        assert other.execute("SELECT id FROM entries WHERE status = 0").fetchall() == [(id,)]
    assert [(entry.id, json.loads(entry.body)["at"]) for entry in spool.pending()] == [(id, 7)]
    blocked.set()
    assert spool.close() == []


def test_the_file_is_for_its_owner_alone(tmp_path):
    Spool(tmp_path / "spool", [RecordingChannel()]).close()
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [Failure, ValueError, OSError, SystemExit, KeyboardInterrupt, RecursionError])
def test_a_failure_of_any_kind_is_tried_again_and_never_ends_the_worker(tmp_path, error):
    channel = RecordingChannel(failures=3, error=error)
    with Spool(tmp_path / "spool", [channel], first_pause=0.01) as spool:
        ids = [spool.put({"at": at}) for at in range(5)]
        eventually(lambda: len(channel.got) == 5)
    assert sorted(alert["id"] for alert in channel.got) == sorted(ids)


def test_an_odd_answer_loses_no_alarm(tmp_path, receiver):
    """On the old code one odd answer ended the sender thread: 18 of 19 alarms were lost, with exit status 0."""
    receiver.answers = [b"HTTP/1.1 abc\r\n\r\n", b"", b"\xff\xfe\r\n\r\n", b"HTTP/1.1 500 no\r\n\r\n"]
    spool = Spool(tmp_path / "spool", [Webhook(receiver.url)], first_pause=0.01)
    ids = [spool.put({"at": at}) for at in range(19)]
    assert spool.close(20) == []
    delivered = receiver.ids()[4:]
    assert sorted(delivered) == sorted(ids)
    assert set(receiver.ids()) == set(ids)
    assert all(json.loads(request.body)["id"] == request.headers["webhook-id"] for request in receiver.requests)


def test_what_is_left_is_returned_and_delivered_by_the_next_spool(tmp_path, receiver):
    dead = Webhook(receiver.url)
    receiver.default = b"HTTP/1.1 503 Busy\r\n\r\n"
    spool = Spool(tmp_path / "spool", [dead], first_pause=0.01)
    ids = [spool.put({"at": at}) for at in range(3)]
    receiver.wait_for(3)
    left = spool.close(0.3)
    assert [entry.id for entry in left] == ids
    assert any("503 Busy" in entry.problem for entry in left)  # that of one may be that it was broken off
    receiver.default, receiver.requests[:] = b"HTTP/1.1 204 OK\r\n\r\n", []
    assert Spool(tmp_path / "spool", [Webhook(receiver.url)]).close(10) == []
    assert receiver.ids() == ids


@pytest.mark.slow
def test_closing_with_a_dead_receiver_ends_at_the_deadline(tmp_path):
    """On the old code a full queue blocked the exit for good."""
    channel = RecordingChannel(failures=10**9)
    spool = Spool(tmp_path / "spool", [channel], first_pause=0.01)
    for at in range(200):
        spool._queue.put([Entry(f"a{at}", channel.name, b"{}")])
    start = time.monotonic()
    assert len(spool.close(0.5)) == 200
    assert time.monotonic() - start < 3


def test_pauses_double_and_vary_up_to_the_longest(tmp_path):
    with Spool(tmp_path / "spool", [], first_pause=1.0, longest_pause=600.0) as spool:
        for tries in (1, 2, 3, 8):
            pauses = [spool._pause(tries) for _ in range(200)]
            assert 2.0 ** (tries - 2) <= min(pauses) < max(pauses) <= 2.0 ** (tries - 1)
        assert max(spool._pause(10**6) for _ in range(200)) <= 600


def test_the_same_id_is_delivered_once(tmp_path):
    channel = RecordingChannel()
    with Spool(tmp_path / "spool", [channel]) as spool:
        spool.put({"id": "one", "at": 1})
        eventually(lambda: len(channel.got) == 1)
        assert spool.put({"id": "one", "at": 1}) == "one"
    with Spool(tmp_path / "spool", [channel]) as spool:
        spool.put({"id": "one", "at": 1})
    assert len(channel.got) == 1


def test_an_id_is_made_of_what_the_alert_says(tmp_path):
    with Spool(tmp_path / "spool", [RecordingChannel()]) as spool:
        assert spool.put({"at": 1}) == spool.put({"at": 1}) != spool.put({"at": 2})
        with pytest.raises(ValueError, match="printable ASCII"):
            spool.put({"id": "a\r\nb"})


@pytest.mark.slow
def test_each_channel_gets_every_alert_and_a_slow_one_holds_up_no_other(tmp_path):
    slow, quick = RecordingChannel(name="slow", pause=0.5), RecordingChannel(name="quick")
    with Spool(tmp_path / "spool", [slow, quick]) as spool:
        for at in range(3):
            spool.put({"at": at})
        eventually(lambda: len(quick.got) == 3, 0.45)
    assert len(slow.got) == 3


def test_what_is_too_old_becomes_a_dead_letter_and_is_named(tmp_path):
    told = []
    channel = RecordingChannel(failures=10**9)
    spool = Spool(tmp_path / "spool", [channel], max_age=0.2, first_pause=0.05, on_message=told.append)
    id = spool.put({"at": 1})
    eventually(lambda: spool.dead_letters())
    assert [entry.id for entry in spool.dead_letters()] == [id]
    assert spool.pending() == []
    spool.close(1)
    assert any(id in sentence and "given up" in sentence for sentence in told)


@pytest.mark.slow
def test_what_grew_too_old_while_nobody_ran_is_tried_once_more(tmp_path):
    spool = Spool(tmp_path / "spool", [RecordingChannel(failures=10**9)], first_pause=10)
    ids = [spool.put({"at": at}) for at in range(2)]
    assert len(spool.close(0.2)) == 2
    time.sleep(0.3)
    works = RecordingChannel()
    with Spool(tmp_path / "spool", [works], max_age=0.2) as spool:
        eventually(lambda: not spool.pending())
        assert spool.dead_letters() == []
    assert sorted(alert["id"] for alert in works.got) == sorted(ids)


def test_a_full_spool_drops_the_oldest_and_counts_them(tmp_path):
    channel = RecordingChannel(failures=10**9)
    told = []
    spool = Spool(tmp_path / "spool", [channel], limit=5, first_pause=100, on_message=told.append)
    ids = [spool.put({"at": at}) for at in range(12)]
    kept = [entry.id for entry in spool.pending()]
    assert len(kept) == 5
    assert kept[-4:] == ids[-4:]
    assert spool.dropped == 7
    assert any("7 of the oldest alerts dropped" in sentence for sentence in told)
    spool.close(0)


@pytest.mark.slow
def test_two_processes_never_deliver_one_alert_at_the_same_time(tmp_path, receiver):
    """Two processes share a spool of 40 alerts whose delivery takes 20 ms each; each alert is posted exactly once."""

    def slowly(connection):
        time.sleep(0.02)
        connection.sendall(b"HTTP/1.1 204 OK\r\n\r\n")

    receiver.default = slowly
    queue = DiskQueue(tmp_path / "spool")
    hook = Webhook(receiver.url)
    queue.put([Entry(f"a{at}", hook.name, b"{}") for at in range(40)])
    queue.close()
    code = (
        "import sys; from fourrates.alerts import Spool, Webhook; Spool(sys.argv[1], [Webhook(sys.argv[2])]).close(30)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "spool", receiver.url]) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert sorted(receiver.ids()) == sorted(f"a{at}" for at in range(40))


def test_what_a_dead_process_held_is_taken_over_at_once_and_what_a_living_one_holds_is_not(tmp_path):
    path = tmp_path / "spool"
    code = "import sys; from fourrates.disk_queue import DiskQueue, Entry; q = DiskQueue(sys.argv[1])\n"
    code += "q.put([Entry('a', 'c', b'{}')]); assert q.claim('c', 3600); print('held', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    mine = DiskQueue(path)
    assert mine.claim("c", 1) is None
    process.kill()
    process.communicate()
    assert (mine.claim("c", 1) is not None) == (sys.platform == "linux")
    mine.close()


def test_a_clock_set_back_does_not_hold_alerts_back(tmp_path, monkeypatch):
    queue = DiskQueue(tmp_path / "spool")
    queue.put([Entry("a", "c", b"{}")])
    queue.failed(queue.claim("c", 1), "no", 600)
    now = time.time()
    monkeypatch.setattr(disk_queue.time, "time", lambda: now - 10**6)
    assert queue.claim("c", 1) is not None
    queue.close()


@pytest.mark.parametrize("damage", ["text", "other database", "more tables", "torn page", "trigger", "folder"])
def test_a_file_that_is_no_spool_is_refused(tmp_path, damage):
    path = tmp_path / "spool"
    if damage == "text":
        path.write_text("y_true,y_pred\n" * 500)
    elif damage == "folder":
        path.mkdir()
    elif damage == "other database":
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE t (x)")
    else:
        spool = Spool(path, [])
        spool._queue.put([Entry(f"a{at}", "c", b"x" * 100) for at in range(100)])
        spool.close()
        with sqlite3.connect(path) as other:
            if damage == "more tables":
                other.execute("CREATE TABLE t (x)")
            elif damage == "trigger":
                other.execute("CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END")
        other.close()
        if damage == "torn page":
            whole = bytearray(path.read_bytes())
            whole[8192:12288] = os.urandom(4096)
            path.write_bytes(bytes(whole))
    with pytest.raises(QueueError, match="spool"):
        Spool(path, [])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("held_until", "soon"),
        ("holder", b"7"),
        ("holder", "x" * 10_000),
        ("due", b"now"),
        ("created", "long ago"),
        ("created", float("inf")),
        ("tries", "many"),
        ("tries", b"\xff"),
        ("tries", 2**63 - 1),
        ("status", "new"),
        ("body", "text"),
        ("id", b"a"),
        ("id", "a\nb"),
        ("channel", b"told"),
    ],
)
def test_a_row_with_values_that_cannot_be_is_a_damaged_spool(tmp_path, column, value):
    """On the old code some of them ended the thread that delivers, and no alarm went out any more."""
    with Spool(tmp_path / "spool", [RecordingChannel(failures=10**9)]) as spool:
        spool.put({"at": 1})
        spool.close(0)
    with sqlite3.connect(tmp_path / "spool") as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute(f"UPDATE entries SET {column} = ?", (value,))
    other.close()
    with pytest.raises(QueueError, match="a damaged queue"):
        Spool(tmp_path / "spool", [RecordingChannel()])


def test_a_forged_row_is_a_failure_not_an_end(tmp_path):
    channel = RecordingChannel()
    spool = Spool(tmp_path / "spool", [channel], first_pause=0.01)
    spool._queue.put([Entry("bad", channel.name, b"\xff not json")])
    good = spool.put({"at": 1})
    eventually(lambda: len(channel.got) == 1)
    assert channel.got[0]["id"] == good
    assert [entry.id for entry in spool.close(0.2)] == ["bad"]
