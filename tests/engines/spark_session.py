"""A small Spark on this machine. Where it cannot be, tests are skipped, or fail if FOURRATES_ENGINES is set."""

import importlib
import os
import shutil
import sys

import pytest

QUIET = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def missing():
    """What Spark needs and is not here; None if it can run."""
    for name in ("pandas", "pyarrow", "google.protobuf", "pyspark"):
        try:
            importlib.import_module(name)
        except ImportError:
            return f"{name} is not installed: pip install fourrates[spark]"
    return None if shutil.which("java") or os.environ.get("JAVA_HOME") else "there is no Java; Spark needs 17"


def start(folder):
    """Start it, or skip the test."""
    if reason := missing():
        if os.environ.get("FOURRATES_ENGINES"):
            pytest.fail(reason)
        pytest.skip(reason)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    builder = SparkSession.builder.master("local[2]").appName("fourrates")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def stands(stream):
    """All there is to know of a stream, to the last digit."""
    detector = stream
    return repr((detector.events, detector.status, detector.evidence, dict(detector.rates), detector.confusion))


def same_streams(bank, other):
    """Whether two banks have the same streams, and each stands where the other has it."""
    return {key: stands(bank[key]) for key in bank} == {key: stands(other[key]) for key in other}
