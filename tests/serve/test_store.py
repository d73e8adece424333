"""What is kept: a monitor comes back as it was, after a stop, a kill, a snapshot; backups; PostgreSQL."""

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fourrates.serve.monitor import Monitor
from fourrates.serve.settings import Settings
from fourrates.serve.store import open_store
from fourrates.serve.store.base import Group, StoredFinding, StoreError
from fourrates.serve.tokens import Tokens

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from servers import Client, Server, postgres_programs

FACTS = ("events", "confusion", "waiting", "waiting_labels", "evidence", "drifts", "segments", "rates", "counts", "arl")


@pytest.fixture(params=["sqlite", "postgresql"])
def options(request):
    return ["--database", request.getfixturevalue("postgres").url] if request.param == "postgresql" else []


def feed(client, name, rounds, seed):
    """Pairs with ids and segments, predictions and some of their labels."""
    random = np.random.default_rng(seed)
    for turn in range(rounds):
        truths = (random.random(200) < 0.3).astype(int).tolist()
        preds = [t ^ int(random.random() < (0.1 if turn < rounds // 2 else 0.4)) for t in truths]
        by = {"s": random.choice(["a", "b", "ç"], 200).tolist()}
        ids = [f"{seed}-{turn}-{row}" for row in range(200)]
        body = {"y_true": truths, "y_pred": preds, "id": ids, "by": by}
        status, answer = client.call("POST", f"/api/monitors/{name}/events", body)
        assert status == 200, answer
        later = [f"late-{one}" for one in ids]
        client.call("POST", f"/api/monitors/{name}/predictions", {"id": later, "y_pred": preds, "by": by})
        client.call("POST", f"/api/monitors/{name}/labels", {"id": later[:150], "y_true": truths[:150]})


def facts(client, name):
    shown = client.call("GET", f"/api/monitors/{name}")[1]
    drifts = client.call("GET", f"/api/monitors/{name}/drifts?limit=1000")[1]["drifts"]
    segments = client.call("GET", f"/api/monitors/{name}/segments")[1]
    return {fact: shown[fact] for fact in FACTS}, drifts, segments


@pytest.mark.slow
def test_a_monitor_that_was_killed_comes_back_as_it_was(tmp_path, options):
    name = f"m{len(options)}"
    # With snapshots after every few batches, and without one: replay alone, and snapshot and replay, must agree.
    for size in ("30000", "100000000"):
        own = f"{name}-{size}"
        server = Server(tmp_path / f"data{size}", *options, snapshot_bytes=size)
        with server, Client(server.port) as client:
            assert client.call("PUT", f"/api/monitors/{own}", {"arl": 3_000, "by": ["s"]})[0] == 201
            feed(client, own, 20, seed=1)
            before = facts(client, own)
            assert before[1]
            server.kill()
            server.start()
            with Client(server.port) as again:
                assert facts(again, own) == before
                feed(again, own, 3, seed=2)
                assert facts(again, own)[0]["events"] == before[0]["events"] + 3 * 350


@pytest.mark.slow
def test_a_second_server_on_the_same_data_is_refused(tmp_path, options, monkeypatch):
    monkeypatch.setattr("fourrates.serve.store.postgres.STARTING", 0.0)
    settings = Settings(data=tmp_path, database=options[1] if options else None)
    store = open_store(settings)
    try:
        with pytest.raises(StoreError, match="another server is running"):
            open_store(settings)
        open_store(settings, owner=False).close()
    finally:
        store.close()


@pytest.mark.slow
def test_a_backup_taken_while_it_runs_is_a_whole_server(tmp_path):
    server = Server(tmp_path / "data")
    with server, Client(server.port) as client:
        client.call("PUT", "/api/monitors/m", {"arl": 3_000, "by": ["s"]})
        feed(client, "m", 5, seed=1)
        before = facts(client, "m")
        from click.testing import CliRunner

        from fourrates.cli.serve import serve

        target = tmp_path / "restored" / "fourrates.db"
        target.parent.mkdir()
        done = CliRunner().invoke(serve, ["backup", "--data", str(tmp_path / "data"), str(target)])
        assert done.exit_code == 0, done.output
        assert target.stat().st_mode & 0o077 == 0  # nobody else's business, like the data
        feed(client, "m", 1, seed=2)
    other = Server(tmp_path / "restored")
    with other, Client(other.port) as client:
        assert facts(client, "m") == before


@pytest.mark.slow
def test_a_backup_that_is_killed_leaves_nothing_under_its_name(tmp_path):
    store = open_store(Settings(data=tmp_path / "data"))
    store.put_document("large", "one", bytes(80 << 20))
    store.close()
    program = "import sys; from fourrates.cli import main; sys.argv[0] = 'fourrates'; main()"
    target = tmp_path / "copy.db"
    words = [sys.executable, "-c", program, "serve", "backup", "--data", tmp_path / "data", target]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not [*tmp_path.glob("*copy.db*")] and process.poll() is None:
            time.sleep(0.001)
        running = process.poll() is None
        process.kill()
    assert running
    assert not target.exists()


def test_the_folder_of_the_data_is_for_its_owner_alone(tmp_path):
    open_store(Settings(data=tmp_path / "data")).close()
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    Tokens(tmp_path / "other").create("t", ["read"])
    assert (tmp_path / "other").stat().st_mode & 0o077 == 0


def test_the_open_drift_overall_is_found_behind_any_number_of_findings_of_segments(tmp_path):
    from fourrates.serve.batch import EVENTS, Batch
    from fourrates.serve.config import parse_config
    from fourrates.serve.registry import Registry

    settings = Settings(data=tmp_path)
    store = open_store(settings)
    registry = Registry(settings, store)
    live = registry.create("m", parse_config({"arl": 2_000, "reference": [[900, 100], [100, 900]]}))
    outcome = live.monitor.apply(Batch(EVENTS, 1e9, 400, bytes([0, 1] * 200), bytes([1, 0] * 200)))
    (drift,) = [registry.finding(live, one, 0, []) for one in outcome.findings if one.kind == "drift"]
    body = {**json.loads(drift.body), "segment": {"s": "a"}}
    others = [
        StoredFinding(f"s{number}", live.row.id, "drift", json.dumps(body).encode(), segment='["a"]')
        for number in range(5_100)
    ]
    store.commit(Group(findings=[drift, *others]))
    for _ in registry.save(live):
        pass
    registry.stale.add(live.row.id)
    registry.refresh()
    assert registry.lives["m"].summary()["drift"]["id"] == drift.id
    assert [one.id for one in store.findings(live.row.id, 10, overall=True)] == [drift.id]
    assert [one.id for one in store.findings(live.row.id, 2, "s2")] == ["s1", "s0"]
    store.close()


@pytest.mark.parametrize(
    ("target", "told"), [("nowhere/copy.db", "No such file or directory"), ("there.db", "is there already")]
)
def test_a_backup_that_cannot_be_written_says_why(tmp_path, target, told):
    from click.testing import CliRunner

    from fourrates.cli.serve import serve

    open_store(Settings(data=tmp_path / "data")).close()
    (tmp_path / "there.db").write_bytes(b"mine")
    done = CliRunner().invoke(serve, ["backup", "--data", str(tmp_path / "data"), str(tmp_path / target)])
    assert told in str(done.exception)
    assert (tmp_path / "there.db").read_bytes() == b"mine"


@pytest.mark.slow
def test_new_settings_are_part_of_the_journal(tmp_path):
    server = Server(tmp_path / "data")
    with server, Client(server.port) as client:
        client.call("PUT", "/api/monitors/m", {"arl": 3_000, "by": ["s"]})
        feed(client, "m", 4, seed=1)
        assert client.call("PATCH", "/api/monitors/m", {"arl": 100_000, "threshold": 0.9})[0] == 200
        status, answer = client.call("PATCH", "/api/monitors/m", {"labels": [0, 1, 2]})
        assert (status, answer["error"]["code"]) == (409, "fixed_setting")
        feed(client, "m", 10, seed=2)
        before = facts(client, "m")
        assert before[0]["arl"] == 100_000
        server.kill()
        server.start()
        with Client(server.port) as again:
            assert facts(again, "m") == before
            assert again.call("GET", "/api/monitors/m")[1]["config"]["threshold"] == 0.9


@pytest.mark.slow
def test_the_journal_is_cut_where_a_snapshot_covers_it_but_for_the_latest_events(tmp_path):
    server = Server(tmp_path / "data", snapshot_bytes=20_000, keep_events=1_000)
    with server, Client(server.port) as client:
        client.call("PUT", "/api/monitors/m", {"by": ["s"]})
        feed(client, "m", 30, seed=1)
        events = client.call("GET", "/api/monitors/m")[1]["events"]
    with sqlite3.connect(tmp_path / "data" / "fourrates.db") as connection:
        first, last = connection.execute("SELECT min(first_event), max(first_event + events) FROM journal").fetchone()
    connection.close()
    assert last == events
    assert 0 < first <= events - 1_000


@pytest.mark.slow
def test_tables_of_others_in_the_same_database_are_left_alone(postgres, tmp_path):
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE shared")
    url = postgres.url.replace("/postgres?", "/shared?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA others")
        connection.execute("CREATE TABLE others.version (release TEXT)")
    store = open_store(Settings(data=tmp_path, database=url))
    store.probe()
    store.close()


@pytest.mark.parametrize("version", [2, 99])
def test_a_database_of_another_version_is_refused(tmp_path, version):
    store = open_store(Settings(data=tmp_path))
    store.close()
    with sqlite3.connect(tmp_path / "fourrates.db") as connection:
        connection.execute("UPDATE version SET number = ?", (version,))
    connection.close()
    with pytest.raises(StoreError, match=f"version {version}"):
        open_store(Settings(data=tmp_path))


def test_a_snapshot_that_is_damaged_is_refused(tmp_path):
    from fourrates.serve.config import parse_config

    settings = Settings(data=tmp_path)
    saved = Monitor(parse_config(b'{"by": ["s"]}'), b"k" * 16, settings).snapshot()
    assert Monitor.restore(saved, b"k" * 16, settings).events == 0
    for cut in (0, 1, len(saved) // 2, len(saved) - 1):
        with pytest.raises(ValueError, match=r".+"):
            Monitor.restore(saved[:cut], b"k" * 16, settings)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_kills_under_load_lose_nothing_and_count_nothing_twice(database, benchmark, tmp_path):
    if database == "postgresql" and postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    sys.modules.setdefault("drawn", benchmark("drawn"))
    result = benchmark("serve_kill").main(kills=5, database=database, seed=11, clients=8, pace=0.4)
    assert result["events"] > 0
    assert result["by failpoint"] == 1
    assert json.dumps(result)
