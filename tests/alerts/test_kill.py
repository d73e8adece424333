"""kill -9 at random moments while alerts are put and delivered."""

import os

import pytest


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9")
def test_every_alert_that_was_put_arrives_under_its_id(benchmark, tmp_path):
    """Three kills here; benchmarks/kill.py does 200."""
    found = benchmark("kill").spool(tmp_path, kills=3, seed=1)
    assert found.alerts >= 3
    assert found.wrong == []
