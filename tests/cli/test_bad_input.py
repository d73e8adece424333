"""Whatever is wrong with the input: one line on the standard error, exit status 2, never a traceback."""

import gzip
import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from .conftest import refused


def test_no_such_file(fourrates):
    ran = fourrates("detect", "nowhere.csv")
    assert refused(ran)
    assert "nowhere.csv: no such file or directory" in ran.err


def test_a_glob_that_matches_nothing(fourrates, tmp_path):
    assert refused(fourrates("detect", tmp_path / "*.csv"))


def test_an_empty_file(fourrates, tmp_path):
    path = tmp_path / "empty.csv"
    path.touch()
    ran = fourrates("detect", path)
    assert refused(ran)
    assert "empty.csv: empty" in ran.err


def test_a_wrong_column(fourrates, drifting):
    ran = fourrates("detect", drifting, "--truth", "lable")
    assert refused(ran)
    assert "no column 'lable'; there are 'timestamp', 'y_true', 'y_pred'" in ran.err


def test_labels_the_options_do_not_know(fourrates, tmp_path):
    path = tmp_path / "mails.csv"
    path.write_text("label,prediction\nham,ham\nspam,ham\n")
    ran = fourrates("detect", path, "--classes", "0,1")
    assert refused(ran)
    assert (
        "line 2: 'ham' in column 'label' is not one of the labels 0, 1; if these are the labels: --classes" in ran.err
    )


@pytest.mark.parametrize("text", ["\N{SUPERSCRIPT TWO}", "9" * 5_000])
def test_a_positive_label_that_looks_like_a_number_and_is_none(fourrates, drifting, text):
    ran = fourrates("detect", drifting, "--positive", text)
    assert ran.status == 2
    assert f"positive {text!r:.40}"[:40] in ran.err


def test_a_word_among_zeros_and_ones_is_no_third_class(fourrates, tmp_path):
    path = tmp_path / "mails.csv"
    path.write_text("label,prediction\n0,1\n1,1\nerror,0\n")
    ran = fourrates("detect", path)
    assert refused(ran)
    assert "line 4: 'error' in column 'label' is not one of the labels 0, 1" in ran.err


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("ham,ham\n", "only one label, 'ham', in the first 1 rows; name the classes (--classes)"),
        ("".join(f"w{i},w{i}\n" for i in range(150)), "150 different labels in the first 150 rows"),
    ],
)
def test_classes_that_cannot_be_taken_from_the_data(fourrates, tmp_path, rows, why):
    path = tmp_path / "mails.csv"
    path.write_text("label,prediction\n" + rows)
    ran = fourrates("detect", path)
    assert refused(ran)
    assert why in ran.err


@pytest.mark.slow
def test_a_truncated_gzip(fourrates, drifting, tmp_path):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(drifting.read_bytes())[:-5000])
    ran = fourrates("detect", path)
    assert refused(ran)
    assert "cut.csv.gz: " in ran.err


def test_parquet_that_is_not(fourrates, tmp_path):
    path = tmp_path / "not.parquet"
    for content in (b"y_true,y_pred\n1,1\n", b"PAR1" + bytes(100) + b"PAR1", b"PAR1"):
        path.write_bytes(content)
        assert refused(fourrates("detect", path))


def test_binary_junk(fourrates, tmp_path):
    path = tmp_path / "junk.csv"
    path.write_bytes(bytes(range(256)) * 100)
    ran = fourrates("detect", path)
    assert refused(ran)
    assert "binary data" in ran.err


@pytest.mark.slow
def test_junk_after_a_good_beginning(fourrates, tmp_path):
    path = tmp_path / "junk.csv"
    path.write_bytes(b"y_true,y_pred\n" + b"1,1\n" * 750_000 + bytes(range(256)) * 10)
    assert refused(fourrates("detect", path))


def test_a_folder_without_data(fourrates, tmp_path):
    assert refused(fourrates("detect", tmp_path))


@pytest.mark.slow
def test_a_pipe_that_closes_before_anything_came(fourrates):
    for command in ("detect", "watch"):
        ran = fourrates(command, "-", stdin=subprocess.DEVNULL)
        assert refused(ran)
        assert "standard input: empty" in ran.err


def test_a_pipe_that_closes_in_the_middle_of_a_row(fourrates):
    ran = fourrates("detect", "-", input="y_true,y_pred,x\n1,1,1\n0,")
    assert refused(ran)
    assert "standard input, line 3: 2 fields instead of 3" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("silent", [True, False])
def test_a_pipe_that_stays_open_behind_a_bad_row(silent):
    """On the old code the process was aborted: a thread still read ahead while the interpreter ended."""
    command = [sys.executable, "-m", "fourrates", "detect", "-", "--classes", "0,1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with suppress(BrokenPipeError):  # it may have ended by then
            process.stdin.write(b"y_true,y_pred\n7,1\n" + b"1,1\n" * 750_000)
            process.stdin.flush()
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            with suppress(BrokenPipeError):
                if not silent:
                    process.stdin.write(b"1,1\n")
                    process.stdin.flush()
            time.sleep(0.005)
        status = process.poll()
        process.kill()
        told = process.stderr.read()
        with suppress(BrokenPipeError):
            process.stdin.close()
    assert (status, told.count(b"\n")) == (2, 2), told
    assert b"standard input, line 2: '7' in column 'y_true'" in told


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("reading", ["iter(io.read(path))", "io.read(path).ahead()"])
def test_a_program_that_ends_in_the_middle_of_a_file(tmp_path, reading):
    """On the old code the process was aborted."""
    path = tmp_path / "x.csv"
    os.mkfifo(path)
    code = f"import sys; from fourrates import io; path = sys.argv[1]\nbatches = {reading}\nnext(batches)"
    with subprocess.Popen([sys.executable, "-c", code, path], stderr=subprocess.PIPE) as process:
        with suppress(BrokenPipeError), path.open("wb", buffering=0) as pipe:
            pipe.write(b"y_true,y_pred\n" + b"1,1\n" * 750_000)
            while process.poll() is None:
                pipe.write(b"1,1\n")
                time.sleep(0.005)
        assert (process.wait(60), process.stderr.read()) == (0, b"")


@pytest.mark.skipif(os.name != "posix", reason="closes a descriptor")
@pytest.mark.parametrize("command", ["detect", "watch"])
def test_standard_input_that_is_closed(command):
    words = ["sh", "-c", 'exec "$0" -m fourrates "$1" - <&-', sys.executable, command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "fourrates: standard input: closed"


@pytest.mark.parametrize("output", [["--json"], []])
def test_a_reader_that_stops_early_ends_the_run_quietly(drifting, tmp_path, output):
    command = [sys.executable, "-m", "fourrates", "detect", str(drifting), "--state", str(tmp_path / "state"), *output]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 141
    assert "fourrates:" not in done.stderr
    assert not (tmp_path / "state").exists()  # the findings were not read, so the next run reports them again


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize("option", ["--csv", "--report", "--state", "--plot"])
def test_a_disk_that_is_full(fourrates, drifting, option):
    ran = fourrates("detect", drifting, option, "/dev/full")
    assert ran.status == 2
    assert "no space left on device" in ran.err


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_disk_behind_the_output(drifting):
    command = [sys.executable, "-m", "fourrates", "detect", str(drifting)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "fourrates: no space left on device"


@pytest.mark.parametrize("option", ["--csv", "--report", "--state", "--plot"])
def test_a_folder_that_is_not_writable(fourrates, drifting, tmp_path, option):
    if os.geteuid() == 0:  # the mode of a folder does not stop root; /proc does
        folder = "/proc"
    else:
        tmp_path.chmod(0o500)
        folder = tmp_path
    ran = fourrates("detect", drifting, option, f"{folder}/result")
    assert refused(ran)


def test_a_folder_that_is_not_there(fourrates, drifting, tmp_path):
    assert refused(fourrates("detect", drifting, "--report", tmp_path / "none" / "page.html"))


def test_an_option_that_is_none(fourrates, drifting):
    ran = fourrates("detect", drifting, "--colour")
    assert ran.status == 2
    assert len(ran.err.strip().splitlines()) == 1
    assert refused(fourrates("nothing"))


def test_a_state_that_is_none(fourrates, drifting, tmp_path):
    state = tmp_path / "state"
    for content in ("{}", '{"fourrates": 99, "detector": "LFR"}', '{"fourrates": 1, "detector": "Path"}', "junk"):
        state.write_text(content)
        ran = fourrates("detect", drifting, "--state", state)
        assert refused(ran), ran.err
        assert state.read_text() == content


def test_a_file_that_is_no_spool(fourrates, drifting, tmp_path):
    path = tmp_path / "state.alerts"
    path.write_text("no spool")
    ran = fourrates("watch", drifting, "--alert", "exec:true", "--state", tmp_path / "state")
    assert refused(ran)
    assert str(path) in ran.err
