"""Ways a program ends. Each is a real process; every row it logged must be at the server or on disk afterwards."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from served import Served
from test_client import Monitor

from fourrates.disk_queue import DiskQueue

ROWS = 100
WAYS = {
    "return": """
        log(range(100))
    """,
    "sys.exit": """
        log(range(100))
        sys.exit(3)
    """,
    "exception": """
        log(range(100))
        raise ValueError("a defect of the program")
    """,
    "SIGINT": """
        log(range(100))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    """,
    "SIGTERM that is handled": """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        log(range(100))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    """,
    "SIGTERM after a flush": """
        log(range(100))
        client.flush(0)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    """,
    "fork after the client was made": """
        for first in (0, 50):
            if os.fork() == 0:
                log(range(first, first + 50))
                sys.exit(0)
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
    """,
    "fork while the parent logs": """
        log(range(50))
        client.flush(0)
        if os.fork() == 0:
            log(range(50, 70))
            sys.exit(0)
        log(range(70, 100))
        os.wait()
    """,
    "os._exit after a flush": """
        log(range(50))
        if os.fork() == 0:
            log(range(50, 100))
            client.flush(0)
            os._exit(0)
        os.wait()
    """,
    "multiprocessing by fork": """
        process = multiprocessing.get_context("fork").Process(target=log, args=(range(100),))
        process.start()
        process.join()
    """,
    "multiprocessing by forkserver": """
        process = multiprocessing.get_context("forkserver").Process(target=log_anew, args=(range(100),))
        process.start()
        process.join()
    """,
    "multiprocessing by spawn": """
        process = multiprocessing.get_context("spawn").Process(target=log_anew, args=(range(100),))
        process.start()
        process.join()
    """,
    "a process of multiprocessing that fails": """
        process = multiprocessing.get_context("fork").Process(target=log_and_fail, args=(range(100),))
        process.start()
        process.join()
    """,
    "Pool": """
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(log, [[number] for number in range(100)])
            pool.close()
            pool.join()
    """,
    "a thread that outlives the main one": """
        def work():
            time.sleep(0.2)
            log(range(100))
        threading.Thread(target=work).start()
    """,
    "no thread can be started any more": """
        def late():
            # As from Python 3.12 on, where nothing can be started while the interpreter ends.
            def refuse(*_):
                raise RuntimeError("can't create new thread at interpreter shutdown")
            threading._start_new_thread = refuse
            log(range(100))
        atexit.register(late)
    """,
}
PROGRAM = """
import atexit, multiprocessing, os, signal, sys, threading, time
import fourrates as fr

client = fr.Client(sys.argv[1], folder=sys.argv[2], wait=60, timeout=2)

def log(ids):
    ids = list(ids)
    client.log("m", id=ids, y_pred=[1] * len(ids))

def log_anew(ids):
    log(ids)

def log_and_fail(ids):
    log(ids)
    raise ValueError("a defect of the program")

if __name__ == "__main__":
"""


def run(way, url, folder):
    """The program of this name, run to its end."""
    program = folder / "program.py"
    program.write_text(PROGRAM + textwrap.indent(textwrap.dedent(WAYS[way]), "    "))
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program, url, folder / "batches"], capture_output=True, text=True, timeout=60
    )
    assert "Exception ignored" not in done.stderr
    return time.monotonic() - began


def on_disk(folder):
    path = folder / "batches" / "batches.queue"
    if not path.exists():
        return []
    queue = DiskQueue(path)
    ids = [id for entry in queue.entries() for id in json.loads(entry.body.split(b"\n")[1])["id"]]
    queue.close()
    return ids


pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="forks and signals")]


@pytest.mark.parametrize("way", WAYS)
def test_every_row_is_at_the_server_or_on_disk(tmp_path, way):
    monitor = Monitor()
    with Served(monitor.app) as served:
        run(way, served.url, tmp_path)
    assert sorted({*monitor.column("id"), *on_disk(tmp_path)}) == list(range(ROWS))
    assert len(monitor.column("id")) == len(set(monitor.column("id")))


@pytest.mark.parametrize("way", ["exception", "fork while the parent logs", "multiprocessing by forkserver", "Pool"])
def test_every_row_is_on_disk_where_nobody_listens(tmp_path, way):
    run(way, "http://127.0.0.1:9", tmp_path)
    assert sorted(on_disk(tmp_path)) == list(range(ROWS))


@pytest.mark.parametrize("way", ["return", "multiprocessing by fork"])
def test_a_server_that_never_answers_holds_up_the_end_for_seconds_only(tmp_path, way):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        took = run(way, f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path)
    assert took < 12
    assert sorted(on_disk(tmp_path)) == list(range(ROWS))


def test_a_killed_process_loses_no_more_than_its_last_moment(tmp_path):
    """SIGKILL with a server that never answers: rows are on disk after `wait`, whatever the sender waits for."""
    program = """
import itertools, sys, time
import fourrates as fr
client = fr.Client(sys.argv[1], folder=sys.argv[2], wait=0.2)
for number in itertools.count():
    print(number, time.monotonic(), flush=True)
    client.log("m", id=number, y_pred=1)
    time.sleep(0.01)
"""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = subprocess.Popen(
            [sys.executable, "-c", program, f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path / "batches"],
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = [process.stdout.readline() for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        lines += process.communicate()[0].splitlines()
    logged = [(int(number), float(moment)) for number, moment in map(str.split, lines)]
    saved = on_disk(tmp_path)
    assert saved == list(range(len(saved)))
    end = logged[-1][1]
    late = [number for number, moment in logged if number not in set(saved) and end - moment > 1.0]
    assert late == []
