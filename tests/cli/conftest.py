"""A stream that drifts in a file, and a way to run the command line as a person does."""

import subprocess
import sys
import time

import numpy as np
import pytest

from fourrates.cli import app
from fourrates.streams import fraud


class Ran:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        assert "Traceback" not in err, err


@pytest.fixture
def fourrates(capsys):
    """Run `fourrates`; in a process of its own where something is piped into it, here elsewhere, which is faster."""

    def run(*arguments, **piped):
        words = [str(argument) for argument in arguments]
        if not piped:
            capsys.readouterr()
            status = app.run(words)
            return Ran(status, *capsys.readouterr())
        command = [sys.executable, "-m", "fourrates", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **piped)
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def stream():
    return fraud(seed=1, length=60_000, days=30)


@pytest.fixture(scope="session")
def drifting(stream, tmp_path_factory):
    """The stream as CSV."""
    path = tmp_path_factory.mktemp("data") / "drifting.csv"
    times = np.datetime_as_string(stream.times)
    rows = zip(times, stream.y_true, stream.y_pred, strict=True)
    path.write_text("timestamp,y_true,y_pred\n" + "".join(f"{t},{a},{b}\n" for t, a, b in rows))
    return path


def refused(ran):
    """Whether a run ended as bad input should: status 2 and one line of text."""
    return ran.status == 2 and ran.err.strip().splitlines()[-1].startswith("fourrates: ") and ran.out == ""


def until_read(pipe):
    """Wait until whoever is at the other end has read what was written."""
    import fcntl  # which some systems do not have
    import termios

    while int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder):
        time.sleep(0.01)
