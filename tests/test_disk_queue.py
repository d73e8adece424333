"""The queue on disk: order, several processes, forks, files that are damaged."""

import os
import sqlite3
import threading

import pytest

from fourrates.disk_queue import DamagedQueue, DiskQueue, Entry, set_aside


@pytest.fixture
def queue(tmp_path):
    made = DiskQueue(tmp_path / "queue")
    yield made
    made.close()


def test_nothing_overtakes_the_first_where_order_is_asked_for(queue, tmp_path):
    queue.put([Entry("a", "c", b"1"), Entry("b", "c", b"2")])
    other = DiskQueue(tmp_path / "queue")
    first = queue.claim("c", 60, in_order=True)
    assert (first.id, other.claim("c", 60, in_order=True)) == ("a", None)
    assert other.claim("c", 60).id == "b"
    queue.failed(first, "not now")
    assert other.claim("c", 60, in_order=True).id == "a"
    other.close()


def test_what_is_left_of_an_entry_keeps_its_place(queue):
    queue.put([Entry("a", "c", b"12", 2), Entry("b", "c", b"3")])
    queue.replace(queue.claim("c", 60), Entry("a2", "c", b"2", 1))
    assert [(entry.id, entry.body, entry.rows) for entry in queue.entries()] == [("a2", b"2", 1), ("b", b"3", 1)]
    assert queue.waiting("c")[0] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.slow
def test_children_may_use_a_queue_that_was_open_in_their_parent(queue, tmp_path):
    """Forks at any moment of a transaction of another thread: SQLite by itself would wait, or break the file."""
    ended = threading.Event()
    numbers = []

    def put():
        while not ended.is_set():
            queue.put([Entry(f"parent{len(numbers)}", "c", b"x" * 1_000)])
            numbers.append(len(numbers))
            ended.wait(0.003)  # SQLite does not queue who waits, and children would wait for long

    thread = threading.Thread(target=put)
    thread.start()
    children = []
    for child in range(20):
        pid = os.fork()
        if pid == 0:
            failed = True
            try:
                queue.put([Entry(f"child{child}", "c", b"y")])
                failed = False
            finally:  # or the rest of the tests would run here too
                os._exit(failed)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 20
    ended.set()
    thread.join()
    ids = [entry.id for entry in queue.entries()]
    assert [id for id in ids if id.startswith("parent")] == [f"parent{number}" for number in numbers]
    assert sorted(id for id in ids if id.startswith("child")) == sorted(f"child{child}" for child in range(20))
    with sqlite3.connect(tmp_path / "queue") as other:
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    other.close()


def test_a_file_that_was_set_aside_leaves_nothing_behind_that_the_next_would_read(tmp_path):
    path = tmp_path / "queue"
    path.write_bytes(b"no queue" * 100)
    (tmp_path / "queue-wal").write_bytes(b"no log")
    with pytest.raises(DamagedQueue, match="queue"):
        DiskQueue(path)
    aside = set_aside(str(path))
    assert os.path.exists(aside)
    queue = DiskQueue(path)
    assert queue.entries() == []
    queue.close()
