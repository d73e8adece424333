"""Short runs of the attacks; `python benchmarks/serve_bombs.py` and `serve_attack.py` do them in full."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("pyarrow")
from servers import postgres_programs

pytestmark = pytest.mark.slow


@pytest.fixture
def attack(benchmark, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "benchmarks"), *sys.path])
    return benchmark("serve_attack")


def test_hostile_bodies_are_answered_within_bounds(benchmark):
    found = benchmark("serve_bombs").main(150, seed=3)
    assert {"200", "400", "422"} <= found["answers"].keys(), "the bodies are of every kind"
    assert found["honest_requests"] > 0


def test_a_clock_that_jumps_expires_nothing_and_every_drift_is_told(attack):
    if attack.faketime() is None:
        pytest.skip("libfaketime is not installed")
    found = attack.clock(5, seed=3, clients=2, waiting=500)
    assert (found["waited"], found["expired"]) == (500, 0)


def test_connections_that_are_cut_lose_nothing_and_count_nothing_twice(attack):
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    found = attack.cuts(5, seed=3, clients=3)
    assert found["cuts"] == 5
    assert found["events"] > 0


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_backup_that_is_killed_is_whole_or_absent(attack, database):
    if database == "postgresql" and postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    found = attack.backup(4, seed=3, database=database, rows=40_000)
    assert found["absent"] > 0


def test_memory_does_not_grow_with_the_events(attack):
    found = attack.soak(400_000, seed=3, size=20_000)
    assert found["events"] == 400_000
