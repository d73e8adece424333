"""Tables and alerts go to folders of the tests' own, so that no test depends on what a user's machine holds."""

import gc
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import pytest
from receiver import Receiver

# One thread for each process of the tests, in which matrices are small: more would only wait for each other. Read when
# NumPy, SciPy and scikit-learn are loaded.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


# What the libraries hold stays: the garbage collector need not look at it again and again.
gc.set_threshold(100_000, 50, 100)


# Tables are shared by the processes of pytest-xdist, which have the first one's environment: each is built once.
if "PYTEST_XDIST_WORKER" not in os.environ:
    TABLES = tempfile.TemporaryDirectory(prefix="fourrates-tables-", ignore_cleanup_errors=True)
    os.environ["FOURRATES_CACHE"] = TABLES.name


@pytest.fixture(scope="session", autouse=True)
def state(tmp_path_factory):
    """Spools of alerts are the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOURRATES_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def receiver():
    """A server on the loopback that takes alerts."""
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="session")
def benchmark():
    """A module of benchmarks/, by its name."""

    def load(name):
        path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where data classes look for themselves
        spec.loader.exec_module(module)
        return module

    return load
