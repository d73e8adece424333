"""PostgreSQL that goes away, comes back, and is used by another server meanwhile."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress

import pytest

pytest.importorskip("psycopg")
import psycopg
from servers import Client, Postgres, Proxy, Server

from fourrates.serve.alert_state import Watched
from fourrates.serve.alerting import Alerting, Channels
from fourrates.serve.settings import Settings
from fourrates.serve.store import open_store
from fourrates.serve.store import postgres as module
from fourrates.serve.store.base import Group, JournalRow, StoreAway, StoreError


@pytest.fixture
def url(postgres):
    """A database of its own."""
    name = f"d{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.url.replace("/postgres?", f"/{name}?")


def cut(url):
    """End every connection of a server to a database."""
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")


def until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


def send(client, name, size, label):
    """Send events until they are accepted."""
    body = {"y_true": [label] * size, "y_pred": [label] * size}
    until(lambda: client.call("POST", f"/api/monitors/{name}/events", body)[0] == 200)


@pytest.mark.slow
def test_a_server_that_was_replaced_for_a_while_counts_what_the_other_one_took(tmp_path, url):
    always = {"snapshot_bytes": 1, "keep_events": 0}
    first, second = (Server(tmp_path / name, "--database", url, **always) for name in ("a", "b"))
    with first, Client(first.port) as client:
        for name in ("m1", "m2"):
            assert client.call("PUT", f"/api/monitors/{name}", {})[0] == 201
            send(client, name, 100, 0)
        first.process.send_signal(signal.SIGSTOP)
        cut(url)
        with second, Client(second.port) as other:
            for name in ("m1", "m2"):
                send(other, name, 1_000, 1)
            assert other.call("DELETE", "/api/monitors/m2")[0] == 204
            assert other.call("PUT", "/api/monitors/m3", {})[0] == 201
            second.stop()
        first.process.send_signal(signal.SIGCONT)
        with Client(first.port) as again:
            for _ in range(3):
                send(again, "m1", 10, 0)
            assert again.call("GET", "/api/monitors/m1")[1]["confusion"] == [[130, 0], [0, 1_000]]
            assert again.call("GET", "/api/monitors/m2")[0] == 404
            assert again.call("GET", "/api/monitors/m3")[1]["events"] == 0
        first.kill()
        first.start()
        with Client(first.port) as again:
            assert again.call("GET", "/api/monitors/m1")[1]["events"] == 1_130


def test_nothing_worked_out_before_another_server_wrote_is_written(tmp_path, url):
    settings = Settings(data=tmp_path, database=url)
    first = open_store(settings)
    row = first.add_monitor("m", "u", b"k" * 16, b"snapshot")
    channels = Channels(tmp_path)
    alerting = Alerting(first, channels)
    alerting.tick(1.8e9, [Watched(row.id, row.uid, "m")])
    epoch = first.epoch
    first.close()
    second = open_store(settings)
    second.commit(Group(journal=[JournalRow(row.id, 0, 1, b"theirs")]))
    second.put_document("alerts", row.uid, b'{"notified": 5.0}')
    second.close()
    with pytest.raises(StoreError, match="another server has written"):
        first.probe()
    assert first.epoch == epoch + 1
    with pytest.raises(StoreError, match="another server has written"), first.in_epoch(epoch):
        first.commit(Group(journal=[JournalRow(row.id, 0, 1, b"ours")]))
    assert [written.body for written in first.journal(row.id, 0)] == [b"theirs"]
    alerting.tick(1.8e9, [Watched(row.id, row.uid, "m")])
    assert b'"notified":5.0' in first.documents("alerts")[row.uid]
    channels.close()
    first.close()


def test_a_new_connection_without_another_server_changes_nothing(tmp_path, url):
    store = open_store(Settings(data=tmp_path, database=url))
    for _ in range(3):
        cut(url)
        with suppress(StoreError):
            store.probe()
        store.probe()
    assert store.epoch == 0
    store.close()


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_connection_cut_at_the_commit_of_a_change_leaves_server_and_database_alike(start, url, method):
    served = start(database=url)
    store = served.app.store
    if method == "DELETE":
        served.http.put("/api/monitors/m", json={})
    query, armed = store._query, True

    def cut_at_commit(sql, values=()):
        nonlocal armed
        found = query(sql, values)
        if sql == "COMMIT" and armed and threading.current_thread().name == "fourrates writer":
            armed = False
            store._drop()
            raise StoreAway("the connection was lost")
        return found

    store._query = cut_at_commit
    assert served.http.request(method, "/api/monitors/m", json={}).status_code == 503
    again = served.http.request(method, "/api/monitors/m", json={})
    assert again.status_code == {"PUT": 200, "DELETE": 404}[method]
    answer = served.http.post("/api/monitors/m/events", json={"y_true": [1], "y_pred": [1]})
    assert answer.status_code == {"PUT": 200, "DELETE": 404}[method]
    assert [row.name for row in store.monitors()] == [*served.app.registry.lives]
    assert store.epoch == 0


def test_our_own_lock_on_a_connection_that_is_dead_does_not_shut_us_out(tmp_path, postgres, url):
    proxy = Proxy(postgres)
    name = url.partition("@/")[2].partition("?")[0]
    store = open_store(Settings(data=tmp_path, database=proxy.url.replace("/postgres", f"/{name}")))
    proxy.lose()
    with pytest.raises(StoreError):
        store.probe()
    store.probe()
    store.close()
    proxy.close()


def test_a_connection_cut_at_any_message_while_it_opens_does_not_shut_us_out(tmp_path, postgres, url):
    proxy = Proxy(postgres)
    name = url.partition("@/")[2].partition("?")[0]
    store = open_store(Settings(data=tmp_path, database=proxy.url.replace("/postgres", f"/{name}")))
    for messages in range(1, 40):
        proxy.cut_after(0)
        proxy.lose()
        with pytest.raises(StoreError):
            store.probe()
        proxy.cut_after(messages, late=True, keep=True)  # of the next connection: its answer is lost
        with suppress(StoreError):
            store.probe()
        proxy.cut_after(0)
        with suppress(StoreError):
            store.probe()
        store.probe()
    store.close()
    proxy.close()


def test_a_table_that_is_locked_is_not_waited_for_without_end(tmp_path, url, monkeypatch):
    monkeypatch.setitem(module.SESSION, "lock_timeout", "200")
    store = open_store(Settings(data=tmp_path, database=url))
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE documents")
        with pytest.raises(StoreAway, match="lock timeout"):
            store.probe()
    store.probe()
    store.close()


@pytest.mark.slow
def test_a_server_waits_for_its_database_and_says_so(tmp_path):
    with Postgres() as database:
        database.kill()
        server = Server(tmp_path / "data", "--database", database.url)
        server.start(wait=False)
        log = tmp_path / "data.log"
        until(lambda: "waiting for the database" in log.read_text())
        database.start()
        server.wait()
        server.stop()


@pytest.mark.slow
def test_a_database_that_stays_away_is_a_status_to_try_again_with(tmp_path):
    program = (
        "import sys; from fourrates.cli import main; from fourrates.serve.store import postgres; "
        "postgres.STARTING = 0.3; sys.argv[0] = 'fourrates'; main()"
    )
    nowhere = f"postgresql://fourrates@/postgres?host={tmp_path}"
    words = [sys.executable, "-c", program, "serve", "--port", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run([*words, "--database", nowhere], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 75
    assert "the database is away" in done.stderr.splitlines()[-1]


def test_the_password_of_the_database_is_in_no_command_line(tmp_path, url, monkeypatch):
    tool = tmp_path / "bin" / "pg_dump"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\necho "$PGPASSWORD" > {tmp_path}/secret\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    store = open_store(Settings(data=tmp_path, database=url.replace("fourrates@", "fourrates:hidden@")), owner=False)
    store.backup(str(tmp_path / "copy"))
    store.close()
    assert "hidden" not in (tmp_path / "words").read_text()
    assert (tmp_path / "secret").read_text() == "hidden\n"


def everything(port):
    with Client(port) as client:
        names = [one["name"] for one in client.call("GET", "/api/monitors")[1]["monitors"]]
        paths = [f"/api/monitors/{name}{end}" for name in names for end in ("", "/drifts?limit=100", "/rejected")]
        found = [client.call("GET", path)[1] for path in paths]
        for one in found:
            one.pop("events_last_hour", None)
        return found


def test_a_service_moves_from_its_folder_to_postgresql_with_all_it_knows(tmp_path, url, fourrates_command):
    data = tmp_path / "data"
    with Server(data) as server, Client(server.port) as client:
        for name in ("m1", "m2"):
            client.call("PUT", f"/api/monitors/{name}", {"arl": 1_000})
            for label in (0, 1):
                body = {
                    "id": [*range(500 * label, 500 * label + 500)],
                    "y_true": [0, 1] * 250,
                    "y_pred": [0, 1 - label] * 250,
                }
                client.call("POST", f"/api/monitors/{name}/events?bad=keep", body | {"version": ["v1"] * 500})
        client.call("POST", "/api/monitors/m2/predictions", {"id": ["a"], "y_pred": [1]})
        client.call("POST", "/api/monitors/m1/events?bad=keep", {"y_true": [0, 7], "y_pred": [0, 1]})
        client.call("DELETE", "/api/monitors/m1")
        client.call("PUT", "/api/monitors/m3", {})
        before = everything(server.port)
        busy = fourrates_command("serve", "move", "--data", data, "--database", url)
        assert "another server is running" in busy.stderr
        server.stop()
    moved = fourrates_command("serve", "move", "--data", data, "--database", url)
    assert (moved.returncode, "moved 2 monitors" in moved.stderr) == (0, True), moved.stderr
    assert not (data / "fourrates.db").exists()
    with Server(tmp_path / "other", "--database", url) as server:
        assert everything(server.port) == before
        with Client(server.port) as client:
            client.call("PUT", "/api/monitors/m4", {})
            assert client.call("POST", "/api/monitors/m4/events?bad=keep", {"y_true": [7], "y_pred": [1]})[0] == 200
            assert client.call("POST", "/api/monitors/m2/labels", {"id": ["a"], "y_true": [1]})[0] == 200
        server.stop()
    (data / "fourrates.db.moved").rename(data / "fourrates.db")
    again = fourrates_command("serve", "move", "--data", data, "--database", url)
    assert "monitors in it already" in again.stderr
    assert (data / "fourrates.db").exists()


@pytest.fixture
def fourrates_command():
    def run(*words):
        command = [sys.executable, "-m", "fourrates", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run
