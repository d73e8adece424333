"""`watch --state`, `--bad-rows`, `--by` and alerts: nothing lost, nothing counted twice, nothing told again."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import fourrates as fr
from fourrates.alerts import verify
from fourrates.cli.states import Checkpoint
from fourrates.io import InputError
from fourrates.state import pack, unpack
from fourrates.watch import Watch

COMMAND = [sys.executable, "-m", "fourrates", "watch"]
CALM, BROKEN = "1,1\n0,0\n" * 300, "1,0\n" * 30


def start(*arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def ended(process, number=signal.SIGINT):
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return process.returncode, [json.loads(line) for line in out.splitlines()], err


def seen(state):
    saved = Checkpoint.load(state)
    return 0 if saved is None else Watch.from_bytes(saved.watch).events


def until(state, events, seconds=30):
    end = time.monotonic() + seconds
    while not state.exists() or seen(state) < events:
        assert time.monotonic() < end, f"{seen(state)} of {events} events"
        time.sleep(0.02)


def places(lines):
    return [(line["at"], line["kind"]) for line in lines]


def findings_of(pairs):
    """Where one detector finds drifts and what becomes of them."""
    detector = fr.FourRates()
    detector.update_many([a for a, _ in pairs], [b for _, b in pairs])
    return [(finding.at, finding.kind) for finding in detector.findings if finding.kind != "shift"]


@pytest.mark.slow
def test_a_restart_goes_on_where_it_was_and_tells_no_drift_again(tmp_path):
    """On the old code all 9 of 9 drifts were told again."""
    log, state = tmp_path / "log.csv", tmp_path / "state"
    log.write_text("y_true,y_pred\n" + CALM + BROKEN)
    first = start(log, "--state", state, "--no-warnings")
    until(state, 630)
    status, told, _ = ended(first)
    assert status == 0
    assert [line["kind"] for line in told] == ["drift", "confirmation"]
    with log.open("a") as file:
        file.write("1,")
    second = start(log, "--state", state, "--no-warnings")
    time.sleep(0.5)
    with log.open("a") as file:
        file.write("1\n" + CALM + BROKEN)
    until(state, 1261)
    status, again, err = ended(second)
    pairs = [(1, 1), (0, 0)] * 300 + [(1, 0)] * 30 + [(1, 1)] + [(1, 1), (0, 0)] * 300 + [(1, 0)] * 30
    assert places(told + again) == findings_of(pairs)
    assert len(again) > 0
    assert "(1,261 in all)" in err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="links and kill -9")
def test_a_log_behind_a_link_loses_nothing_when_its_file_is_rotated(tmp_path):
    """As Kubernetes does it: the file is renamed in its own folder. On the old code 127 of 383 lines were lost."""
    log, state, pods = tmp_path / "x.log", tmp_path / "state", tmp_path / "pods"
    pods.mkdir()
    file = pods / "0.log"
    log.symlink_to(file)
    file.write_text("y_true,y_pred\n" + CALM)
    process = start(log, "--state", state)
    until(state, 600)
    for turn in (1, 2, 3):
        if turn == 2:
            process.kill()
            process.communicate()
        with file.open("a") as written:
            written.write("1,1\n" * 10)
        file.rename(f"{file}.20260131-10000{turn}")
        file.write_text("y_true,y_pred\n" + "0,0\n" * 5)
        if turn == 2:
            process = start(log, "--state", state)
        until(state, 600 + 15 * turn)
    assert "(645 in all)" in ended(process)[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "other", [["--detector", "DDM"], ["--classes", "a,b"], ["--by", "y_true"], ["--truth", "y_pred"]]
)
def test_other_options_than_those_of_the_state_are_refused(fourrates, tmp_path, other):
    log, state = tmp_path / "log.csv", tmp_path / "state"
    log.write_text("y_true,y_pred\n" + CALM)
    first = start(log, "--state", state)
    until(state, 600)
    ended(first)
    assert fourrates("watch", log, "--state", state, *other).status == 2
    elsewhere = tmp_path / "other.csv"
    elsewhere.write_text("y_true,y_pred\n")
    ran = fourrates("watch", elsewhere, "--state", state)
    assert ran.status == 2
    assert "is the state of watching" in ran.err


@pytest.mark.slow
def test_a_damaged_state_is_refused_whatever_is_wrong_with_it(tmp_path):
    log, state = tmp_path / "log.csv", tmp_path / "state"
    log.write_text("y_true,y_pred\n" + CALM)
    first = start(log, "--state", state)
    until(state, 600)
    ended(first)
    whole = state.read_bytes()
    assert Checkpoint.from_bytes(whole).to_bytes() == whole
    for at in range(0, len(whole), 37):
        with pytest.raises(InputError):
            Checkpoint.from_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(InputError):
            Checkpoint.from_bytes(whole[:at])
    kind, content, sections = unpack(whole)
    with pytest.raises(InputError):
        Checkpoint.from_bytes(pack(kind, content, **{**sections, "watch": b""}))
    for name in content:
        for value in (None, -1, "x", [], {"a": 1}, True, 10**30):
            try:
                Checkpoint.from_bytes(pack(kind, {**content, name: value}, **sections))
            except InputError:
                continue
            assert name in ("origin", "source", "position", "format", "warning", "asked"), (name, value)


@pytest.mark.slow
def test_a_pipe_goes_on_with_its_detectors(fourrates, tmp_path):
    state = tmp_path / "state"
    first = fourrates("watch", "-", "--state", state, input="y_true,y_pred\n" + CALM)
    second = fourrates("watch", "-", "--state", state, "--no-warnings", input="y_true,y_pred\n" + BROKEN)
    assert (first.status, second.status) == (0, 0)
    found = [json.loads(line) for line in second.out.splitlines()]
    assert places(found) == findings_of([(1, 1), (0, 0)] * 300 + [(1, 0)] * 30)
    assert found[0]["kind"] == "drift"
    assert 600 <= found[0]["at"] < 630


@pytest.mark.slow
def test_bad_rows_are_set_aside_and_counted(fourrates, tmp_path):
    """On the old code one bad line ended the watch."""
    bad = tmp_path / "bad.jsonl"
    text = "y_true,y_pred\n" + CALM + "1,x\n1\n\x00\n" + BROKEN
    ran = fourrates("watch", "-", "--no-warnings", "--bad-rows", bad, input=text)
    assert ran.status == 0
    rows = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [(row["line"], row["text"]) for row in rows] == [(602, "1,x"), (603, "1"), (604, "\x00")]
    assert "not one of the labels" in rows[0]["problem"]
    assert "3 bad rows" in ran.err
    assert "630 events" in ran.err
    assert [json.loads(line)["kind"] for line in ran.out.splitlines()] == ["drift", "confirmation"]


def test_many_streams_are_watched_each_on_its_own(fourrates):
    rows = [(1, 1), (0, 0)] * 300 + [(1, 0)] * 30
    text = "y_true,y_pred,model\n" + "".join(f"{t},{g},calm\n{t},{g},[/x]\n" for t, g in rows[:600])
    text += "".join(f"{t},{g},[/x]\n1,1,calm\n" for t, g in rows[600:])
    ran = fourrates("watch", "-", "--by", "model", input=text)
    assert ran.status == 0
    found = [line for line in map(json.loads, ran.out.splitlines()) if line["kind"] != "shift"]
    assert {line["stream"] for line in found} == {"[/x]"}
    assert places(found) == findings_of(rows)
    assert "drift" in [line["kind"] for line in found]


@pytest.mark.slow
def test_the_end_of_a_drift_is_an_alert_too_and_all_else_is_a_line(fourrates, tmp_path, receiver):
    """Worse than its reference from the first event on, then as good as it; positives come more often at the end."""
    random = np.random.default_rng(3)
    rows = [(random.random() < 0.5, random.random() < right) for right in [0.6] * 1500 + [0.9] * 3000]
    rows += [(random.random() < 0.8, random.random() < 0.9) for _ in range(1500)]
    text = "y_true,y_pred\n" + "".join(f"{truth:d},{truth == right:d}\n" for truth, right in rows)
    ran = fourrates(
        *("watch", "-", "--reference", "4500,500,500,4500", "--alert", receiver.url),
        input=text,
        env=os.environ | {"FOURRATES_STATE": str(tmp_path)},
    )
    assert ran.status == 0, ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    kinds = [line["kind"] for line in lines]
    assert "shift" in kinds[kinds.index("recovery") :]
    assert "confirmation" in kinds
    told = [line for line in lines if line["kind"] == "drift" or line.get("closes")]
    assert "recovery" in [line["kind"] for line in told]
    posted = [json.loads(request.body) for request in receiver.requests]
    assert sorted(posted, key=lambda one: one["at"]) == told
    assert [one["event"] for one in told] == [one["kind"] for one in told]
    recovery = next(one for one in told if one["event"] == "recovery")
    assert recovery["text"].startswith("standard input recovered: tpr (positives caught) 0.")
    assert recovery["text"].endswith(f"\nClosed at event {recovery['at']:,}")
    assert recovery["changes"][0]["direction"] == "up"
    findings = [kind for kind in kinds if kind not in ("shift", "warning")]
    assert "recover" in ran.err.splitlines()[-1 - min(len(findings), 10)]


@pytest.mark.slow
def test_an_alert_carries_id_name_text_and_signature(fourrates, tmp_path, receiver):
    ran = fourrates(
        *("watch", "-", "--no-warnings", "--alert", receiver.url),
        input="y_true,y_pred\n" + CALM + BROKEN,
        env=os.environ | {"FOURRATES_STATE": str(tmp_path), "FOURRATES_WEBHOOK_SECRET": "s3cret"},
    )
    assert ran.status == 0, ran.err
    (request,) = receiver.requests
    posted = json.loads(request.body)  # a confirmation is a line, and no alert
    assert [posted] == [line for line in map(json.loads, ran.out.splitlines()) if line["kind"] != "confirmation"]
    assert posted["stream"] == "standard input"
    assert posted["text"].startswith("standard input drifted: t")
    assert re.search(r"\nSince about event \d+, found at event 6\d\d$", posted["text"])
    assert verify("s3cret", request.headers, request.body) == posted["id"]


@pytest.mark.slow
def test_what_cannot_be_delivered_is_named_kept_and_delivered_by_the_next_run(fourrates, tmp_path, receiver):
    """On the old code 12 s of outage lost alarms for good, with exit status 0."""
    options = ["--no-warnings", "--alert", receiver.url]
    soon = os.environ | {"FOURRATES_STATE": str(tmp_path), "FOURRATES_ALERT_SECONDS": "0.5"}
    receiver.default = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n"
    ran = fourrates("watch", "-", *options, input="y_true,y_pred\n" + CALM + BROKEN, env=soon)
    id = json.loads(ran.out.splitlines()[0])["id"]
    assert ran.status == 4
    (named,) = [line for line in ran.err.splitlines() if "undelivered" in line]
    assert id in named
    assert "redirects are not followed" in named
    assert str(tmp_path) in named
    receiver.default, receiver.requests[:] = b"HTTP/1.1 200 OK\r\n\r\n", []
    ran = fourrates("watch", "-", *options, input="y_true,y_pred\n1,1\n", env=soon)
    assert ran.status == 0
    assert receiver.ids() == [id]


@pytest.mark.slow
def test_a_hanging_receiver_does_not_hold_up_the_end(fourrates, tmp_path, receiver):
    receiver.default = lambda connection: time.sleep(30)
    soon = os.environ | {"FOURRATES_STATE": str(tmp_path), "FOURRATES_ALERT_SECONDS": "0.5"}
    begin = time.monotonic()
    ran = fourrates("watch", "-", "--alert", receiver.url, input="y_true,y_pred\n" + CALM + BROKEN, env=soon)
    assert ran.status == 4
    assert time.monotonic() - begin < 10


@pytest.mark.slow
def test_asked_twice_it_ends_at_once_and_still_names_what_is_left(tmp_path, receiver, monkeypatch):
    receiver.default = b"HTTP/1.1 500 no\r\n\r\n"
    log = tmp_path / "log.csv"
    log.write_text("y_true,y_pred\n" + CALM + BROKEN)
    monkeypatch.setenv("FOURRATES_STATE", str(tmp_path))
    monkeypatch.setenv("FOURRATES_ALERT_SECONDS", "60")
    process = start(log, "--alert", receiver.url)
    receiver.wait_for(1, 30)
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    begin = time.monotonic()
    status, _, err = ended(process)
    assert status == 4
    assert "undelivered" in err
    assert time.monotonic() - begin < 10


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9")
@pytest.mark.parametrize("copytruncate", [False, True])
def test_killed_at_random_moments_nothing_is_lost_or_counted_twice(benchmark, tmp_path, copytruncate):
    """Two kills each; benchmarks/kill.py does 200."""
    found = benchmark("kill").watch(tmp_path, kills=2, seed=1, copytruncate=copytruncate, longest=0.3)
    assert found.kills == 2
    assert found.wrong == []
