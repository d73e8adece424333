"""`fourrates watch`: what is told, when, and to whom."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from typing import ClassVar

import pytest

import fourrates as fr

from .conftest import until_read

COMMAND = [sys.executable, "-m", "fourrates", "watch"]
CAREFUL = ["--detector", "LFR(detect=1e-6)"]


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def watching():
    """Start `watch` with pipes; ended after the test."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def one_at_a_time(stream):
    """Every warning and drift, from plain updates."""
    detector, told, warning = fr.LFR(detect=1e-6), [], False
    for truth, pred in zip(stream.y_true.tolist(), stream.y_pred.tolist(), strict=True):
        drift = detector.update(truth, pred)
        if drift is not None:
            told.append(("drift", drift.at))
        elif detector.warning_detected and not warning:
            told.append(("warning", detector.events - 1))
        warning = detector.warning_detected
    return told


@pytest.mark.slow
def test_every_drift_and_every_warning_that_lasts_is_a_line(fourrates, drifting, stream):
    """A warning is reported if it is open after what has just arrived, from the event that opened it on."""
    with drifting.open() as file:
        ran = fourrates("watch", "-", *CAREFUL, stdin=file)
    assert ran.status == 0
    told = [(line["kind"], line["at"]) for line in lines_of(ran.out)]
    wanted = one_at_a_time(stream)
    assert [one for one in told if one[0] == "drift"] == [one for one in wanted if one[0] == "drift"]
    assert {*told} <= {*wanted}
    assert "60,000 events" in ran.err


@pytest.mark.slow
def test_drifts_alone(fourrates, drifting, stream):
    with drifting.open() as file:
        ran = fourrates("watch", "-", *CAREFUL, "--no-warnings", stdin=file)
    assert [line["at"] for line in lines_of(ran.out)] == [at for kind, at in one_at_a_time(stream) if kind == "drift"]


@pytest.mark.slow
def test_a_drift_is_told_while_the_pipe_is_open(watching):
    process = watching("-", "--no-warnings")
    process.stdin.write(b"y_true,y_pred\n" + b"1,1\n0,0\n" * 300 + b"1,0\n" * 30)
    process.stdin.flush()
    line = json.loads(process.stdout.readline())
    assert line["kind"] == "drift"
    assert 600 <= line["at"] < 630
    assert process.poll() is None


@pytest.mark.slow
def test_interrupting_prints_the_summary(watching):
    process = watching("-")
    process.stdin.write(b'{"y_true": 1, "y_pred": 1}\n' * 100)
    process.stdin.flush()
    until_read(process.stdin)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert b"100 events" in err
    assert b"Traceback" not in err


@pytest.mark.slow
def test_a_growing_file_is_followed_and_its_successor_too(watching, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("y_true,y_pred\n" + "1,1\n0,0\n" * 300)
    process = watching(path, "--no-warnings")
    assert [process.stderr.readline().split()[0] for _ in range(2)] == [b"labels", b"budget:"]
    with path.open("a") as file:
        file.write("1,0\n" * 30)
    assert json.loads(process.stdout.readline())["kind"] == "drift"
    replacement = tmp_path / "new.csv"
    replacement.write_text("y_true,y_pred\n" + "1,1\n0,0\n" * 300 + "1,0\n" * 30)
    os.replace(replacement, path)
    while json.loads(process.stdout.readline())["at"] < 1230:  # the way back up is a drift too
        pass


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="named pipes are POSIX")
def test_a_named_pipe_is_waited_for_read_to_its_end_and_left_when_asked(watching, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = watching(pipe)
    with pipe.open("w"):  # once it is read from
        ended.send_signal(signal.SIGTERM)
        assert "0 events" in ended.communicate(timeout=60)[1].decode()
    assert ended.returncode == 0
    process = watching(pipe)
    with pipe.open("w") as writer:
        writer.write("y_true,y_pred\n" + "1,1\n0,0\n" * 50)
        writer.flush()
        until_read(writer)
        writer.write("1,1\n0,0\n" * 50)
    assert "200 events" in process.communicate(timeout=60)[1].decode()
    assert process.returncode == 0


@pytest.mark.slow
def test_bad_lines_end_it_with_the_line_named(fourrates):
    ran = fourrates("watch", "-", input="y_true,y_pred\n1,1\n1,x\n")
    assert ran.status == 2
    assert "standard input, line 3: 'x' in column 'y_pred' is not one of the labels 0, 1" in ran.err
    ran = fourrates("watch", "-", input="y_true,y_pred\n1,1\n1\n")
    assert "standard input, line 3: 1 fields instead of 2" in ran.err


@pytest.mark.slow
def test_a_command_gets_the_drift(fourrates, drifting, tmp_path):
    got = tmp_path / "got"
    with drifting.open() as file:
        ran = fourrates(
            "watch", "-", *CAREFUL, "--alert", f"exec:cat >> {got}; echo $FOURRATES_RATES >> {got}", stdin=file
        )
    assert ran.status == 0
    record, rates = got.read_text().splitlines()[:2]
    assert json.loads(record)["kind"] == "drift"
    assert rates == "tpr:down"


@pytest.mark.slow
def test_a_command_that_fails_is_tried_again_and_then_told(fourrates, drifting, tmp_path):
    tries = tmp_path / "tries"
    with drifting.open() as file:
        ran = fourrates(
            "watch", "-", *CAREFUL, "--alert", f"exec:echo x >> {tries}; test $(wc -l < {tries}) -ge 3", stdin=file
        )
    assert ran.status == 0
    assert len(tries.read_text().splitlines()) >= 3
    assert "--exec failed" not in ran.err


class Hook(http.server.BaseHTTPRequestHandler):
    answers: ClassVar[list[int]] = []
    got: ClassVar[list[dict]] = []

    def do_POST(self):
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.answers.pop(0) if self.answers else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_a_webhook_is_tried_again_and_does_not_hold_up_the_stream(fourrates, drifting):
    Hook.answers, Hook.got = [500, 503], []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with drifting.open() as file:
            ran = fourrates("watch", "-", *CAREFUL, "--alert", f"http://127.0.0.1:{server.server_port}/", stdin=file)
        server.shutdown()
    told = [line["at"] for line in lines_of(ran.out) if line["kind"] == "drift"]
    assert ran.status == 0
    assert len(Hook.got) == len(told) + 2
    assert {record["at"] for record in Hook.got[2:]} == set(told)


def test_an_address_that_is_none_is_refused(fourrates):
    assert fourrates("watch", "-", "--alert", "example.org", input="").status == 2
