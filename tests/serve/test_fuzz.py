"""A short run of the fuzzer; `python benchmarks/serve_fuzz.py` does a hundred thousand."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")


@pytest.mark.slow
def test_requests_that_nobody_should_send_are_answered_and_do_no_harm(benchmark, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "benchmarks"), *sys.path])
    found = benchmark("serve_fuzz").main(1_500, seed=5, slow_too=False)
    assert found["requests"] >= 1_500
    assert {"200", "400", "401", "403", "404", "422"} <= set(found["answers"]), "the requests are of every kind"
    assert found["sound_events"] > 0
