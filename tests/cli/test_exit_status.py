"""0 for done, 1 for drift, 2 for input that cannot be used, 3 for a defect of ours; and what is said in each case."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fourrates import files
from fourrates.cli import app, detect
from fourrates.watch import Watch

from .conftest import refused, until_read


def broken(*_, **__):
    raise ValueError("something is odd in here")


@pytest.fixture
def defective(monkeypatch, tmp_path):
    """A run with a defect of ours in it, and a folder for what is written about it."""
    monkeypatch.setattr(Watch, "update", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_defect_of_ours_is_not_taken_for_drift_or_bad_input(fourrates, drifting, defective):
    ran = fourrates("detect", drifting, "--fail-on", "drift")
    assert ran.status == 3
    assert ran.out == ""
    *_, what, how = ran.err.splitlines()
    assert what == "fourrates: a defect of fourrates, not of your data: ValueError: something is odd in here"
    (path,) = defective.glob("fourrates-defect-*.txt")
    assert f"open an issue with the content of {path}" in how
    assert path.stat().st_mode & 0o077 == 0
    written = path.read_text()
    assert "something is odd in here" in written.splitlines()[-1]
    assert "in broken" in written
    assert shlex.join(["fourrates", "detect", str(drifting), "--fail-on", "drift"]) in written


def test_the_traceback_of_a_defect_is_shown_where_no_file_can_have_it(drifting, defective, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(drifting))
    assert app.run(["detect", str(drifting)]) == 3
    assert "in broken" in capsys.readouterr().err


def test_a_part_of_the_package_that_is_missing_is_a_defect_of_ours(fourrates, drifting, defective, monkeypatch):
    missing = Path(detect.__file__).parent / "gone.css"
    monkeypatch.setattr(Watch, "update", lambda *_: missing.read_text())
    assert fourrates("detect", drifting).status == 3


def test_a_library_that_is_not_installed_is_named_with_what_installs_it(fourrates, drifting, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in [name for name in sys.modules if name.startswith("fourrates.report")]:
        monkeypatch.delitem(sys.modules, name)
    ran = fourrates("detect", drifting, "--report", tmp_path / "page.html")
    assert ran.status == 2
    assert "this needs jinja2: pip install 'fourrates[cli]'" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "detect {data} --detector LFR(decay=2)",
        "detect {data} --classes 0,0",
        "detect {data} --positive 7",
        "detect {data} --score y_pred --pred y_pred",
        "detect {data} -d DDM(warn=3,detect=2)",
        "watch {data} --detector LFR(warn=2)",
        "demo {data}",
    ],
)
def test_what_was_asked_for_and_cannot_be_is_the_askers(fourrates, drifting, words):
    ran = fourrates(*words.format(data=drifting).split())
    assert refused(ran), (ran.status, ran.err)


@pytest.mark.parametrize("option", ["--csv", "--report", "--plot", "--state"])
def test_an_error_names_the_file_that_was_given(fourrates, drifting, tmp_path, monkeypatch, option):
    given = "results/page.html"  # as it was typed, neither made absolute nor the scratch file beside it
    monkeypatch.chdir(tmp_path)
    ran = fourrates("detect", drifting, option, given)
    assert ran.status == 2
    assert ran.err.splitlines()[-1] == f"fourrates: {given}: no such file or directory"


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "somewhere/else")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left") as caught:
        files.write(tmp_path / "x", b"new")
    assert caught.value.filename == str(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def interrupted(words, piped, wanted):
    """The last line of a command that gets Ctrl-C once it has read something, with its input still open."""
    for _ in range(5):  # how far it has come by then is not in our hands
        command = [sys.executable, "-m", "fourrates", *map(str, words)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            process.stdin.write(piped)
            process.stdin.flush()
            until_read(process.stdin)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
            out, err = process.stdout.read(), process.stderr.read().decode()
        if re.fullmatch(wanted, err.splitlines()[-1]):
            break
    assert (process.returncode, out) == (130, b"")
    return err.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_says_what_was_done(tmp_path):
    """A pipe that stays open: the batches that came are taken, then comes Ctrl-C."""
    words = ["detect", "-", "--csv", tmp_path / "found.csv"]
    wanted = r"fourrates: stopped after [1-9][\d,]* events.*"
    assert re.fullmatch(wanted, interrupted(words, b"y_true,y_pred\n" + b"1,1\n0,0\n" * 1_000_000, wanted))
    assert not (tmp_path / "found.csv").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_before_anything_came_says_so():
    wanted = "fourrates: stopped before the first events were read"
    assert interrupted(["detect", "-"], b"y_true,y_pred\n1,1\n", wanted) == wanted


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("command", ["detect", "watch"])
def test_a_named_pipe_cannot_keep_a_state(fourrates, drifting, tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    ran = fourrates(command, drifting, "--state", tmp_path / "pipe")
    assert ran.status == 2
    assert f"{tmp_path / 'pipe'}: a named pipe" in ran.err
