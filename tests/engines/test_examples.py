"""The examples of the engines run as they stand."""

import subprocess
import sys
from pathlib import Path

import kafka_broker
import pytest
import spark_session

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    return subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=600)


@pytest.mark.skipif(not kafka_broker.HERE, reason=kafka_broker.REASON)
def test_the_example_on_kafka_finds_oslo():
    done = run("on_kafka.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("drifted: ") == 1
    assert "Oslo drifted: tpr" in done.stdout


@pytest.mark.skipif(spark_session.missing() is not None, reason=str(spark_session.missing()))
def test_the_example_on_spark_finds_oslo():
    done = run("on_spark.py")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Oslo" in done.stdout
