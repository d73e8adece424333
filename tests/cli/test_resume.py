"""A stream cut anywhere and resumed gives the same drifts; a state file is whole at every moment."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.run import Run


def told(found):
    """What is told of a drift, without the name of the file and the row in it."""
    return (found.drift, found.at.event, found.at.time, found.since.event, found.since.time, found.before, found.after)


def batches(stream, cuts):
    frame = {"y_true": stream.y_true, "y_pred": stream.y_pred, "time": stream.times}
    for start, end in zip([0, *cuts], [*cuts, stream.y_true.size], strict=True):
        yield from io.read({name: column[start:end] for name, column in frame.items()}, columns=io.Columns(time="time"))


@pytest.mark.parametrize("detector", [fr.LFR(), fr.FourRates(50_000)], ids=["LFR", "FourRates"])
def test_a_stream_cut_anywhere_gives_the_same_drifts(stream, detector):
    whole = Run(detector)
    wanted = [told(one) for batch in batches(stream, []) for one in whole.take(batch)]
    assert len(wanted) >= 2
    random = np.random.default_rng(1)
    edges = [one[i] + d for one in wanted for i in (1, 3) for d in (-1, 0, 1, 2)]  # around since and at
    for cuts in [*([edge] for edge in edges), *(sorted(random.integers(1, 60_000, 5).tolist()) for _ in range(20))]:
        run = Run(detector)
        found = []
        for batch in batches(stream, cuts):
            run = Run.from_bytes(run.to_bytes())
            found += [told(one) for one in run.take(batch)]
        assert found == wanted, cuts
        assert run.events == 60_000


def test_files_in_turn_give_what_one_file_gives(fourrates, drifting, tmp_path):
    header, *rows = drifting.read_text().splitlines(keepends=True)
    found = []
    state = tmp_path / "state"
    cuts = [0, 20_000, 36_050, 36_400, 60_000]
    for day, (start, end) in enumerate(pairwise(cuts)):
        part = tmp_path / f"day-{day}.csv"
        part.write_text(header + "".join(rows[start:end]))
        going_on = ["--resume", state] if day else []
        # The default budget depends on the volume of the file it is chosen for, so it is named.
        ran = fourrates("detect", part, "--json", "--budget", "50000", *going_on, "--save", state)
        assert ran.status == 0, ran.err
        found += json.loads(ran.out)["drifts"]
    wanted = json.loads(fourrates("detect", drifting, "--json", "--budget", "50000").out)["drifts"]
    # Where a row stands differs; the time of the start is known where it came in the same file as the alarm.
    places = ("file", "row", "since_file", "since_row", "started_time")
    assert [{k: v for k, v in one.items() if k not in places} for one in found] == [
        {k: v for k, v in one.items() if k not in places} for one in wanted
    ]


def test_many_streams_go_on_too(fourrates, tmp_path):
    random = np.random.default_rng(5)
    rows = [f"{m},{t},{g}\n" for m, t, g in zip(*random.integers(0, 2, (3, 4000)).tolist(), strict=True)]
    text = ["model,y_true,y_pred\n", *rows]
    parts = [text[:1700], text[:1] + text[1700:]]
    state, whole = tmp_path / "state", tmp_path / "whole.csv"
    whole.write_text("".join(text))
    found = []
    for i, part in enumerate(parts):
        path = tmp_path / f"{i}.csv"
        path.write_text("".join(part))
        ran = fourrates("detect", path, "--by", "model", "--json", "--save", state, *(["--resume", state] if i else []))
        found += json.loads(ran.out)["drifts"]
    wanted = json.loads(fourrates("detect", whole, "--by", "model", "--json").out)["drifts"]
    assert [(one["stream"], one["at"]) for one in found] == [(one["stream"], one["at"]) for one in wanted]


def test_resuming_with_another_detector_is_refused(fourrates, drifting, tmp_path):
    state = tmp_path / "state"
    fourrates("detect", drifting, "--save", state)
    ran = fourrates("detect", drifting, "--resume", state, "--detector", "LFR(decay=0.8)")
    assert ran.status == 2
    assert "goes on with FourRates(arl=" in ran.err
    assert fourrates("detect", drifting, "--resume", state, "--budget", "77777").status == 2
    assert fourrates("detect", drifting, "--resume", state, "--detector", "FourRates").status == 0


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_run_killed_while_saving_leaves_a_state_that_resumes(tmp_path):
    """Saves in a loop as fast as it can, killed at a random moment, thirty times."""
    state = tmp_path / "state"
    code = (
        "import sys, fourrates as fr; from fourrates import files, io; from fourrates.run import Run\n"
        "run = Run(fr.LFR())\n"
        "batch, = io.read({'y_true': [0, 1] * 50, 'y_pred': [0, 1] * 50})\n"
        "files.write(sys.argv[1], run.to_bytes()); print('ready', flush=True)\n"
        "while True:\n    run.take(batch); files.write(sys.argv[1], run.to_bytes())\n"
    )
    random = np.random.default_rng(2)
    for _ in range(30):
        process = subprocess.Popen([sys.executable, "-c", code, state], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(float(random.uniform(0, 0.03)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        run = Run.from_bytes(state.read_bytes())
        assert run.events % 100 == 0
        assert all(detector.events == run.events for detector in run.streams.values())


def test_a_link_and_a_device_stay_what_they_are(tmp_path):
    from fourrates import files

    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    files.write(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    files.write(os.devnull, b"new")
    assert not os.path.isfile(os.devnull)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]
