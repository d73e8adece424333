"""Labels that come weeks later, run every night: the same answer as all at once, dated by the predictions."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fourrates.io.cohorts import Cohorts
from fourrates.join import LabelJoin

pa, csv = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".csv"))
DAYS, DAY = 60, 86_400_000_000
START = np.datetime64("2026-06-01T00:00:00", "us")


@pytest.fixture(scope="module")
def log():
    """A fraud log in which one of three countries falls on day 30; labels come 1 to 12 days later, some never."""
    random, size = np.random.default_rng(3), 60_000
    day = np.sort(random.random(size)) * DAYS
    country = random.choice(["DE", "FR", "US"], size)
    truth = random.random(size) < 0.1
    tpr = np.where((country == "FR") & (day >= 30), 0.5, 0.8)
    pred = np.where(truth, random.random(size) < tpr, random.random(size) < 0.02)
    labelled = np.where(random.random(size) < 0.05, np.inf, day + 1 + 11 * random.random(size))
    return day, country, truth, pred, labelled


class Night:
    """The folders of a night, and the command."""

    def __init__(self, log, folder, fourrates):
        self.day, self.country, self.truth, self.pred, self.labelled = log
        self.folder, self.run = folder, fourrates
        for name in ("predictions", "labels"):
            (folder / name).mkdir()

    def write(self, night):
        made, came = (np.floor(times) == night - 1 for times in (self.day, self.labelled))
        ids, when = np.arange(self.day.size), START + (self.day * DAY).astype("m8[us]")
        self._csv(
            "predictions", night, id=ids[made], time=when[made], pred=self.pred[made] * 1, country=self.country[made]
        )
        arrived = START + (self.labelled[came] * DAY).astype("m8[us]")
        if came.any():
            self._csv("labels", night, id=ids[came], label=self.truth[came] * 1, label_time=arrived)

    def _csv(self, name, night, **columns):
        csv.write_csv(pa.table(columns), self.folder / name / f"{night:03}.csv")

    def detect(self, *words, state="model.state"):
        given = [self.folder / "predictions", "--labels-from", self.folder / "labels", "--by", "country"]
        words = [*given, "--budget", 60_000, "--json", *(["--state", self.folder / state] if state else []), *words]
        ran = self.run("detect", *words)
        assert ran.status in (0, 1), ran.err
        return ran.status, json.loads(ran.out) if ran.out else None


@pytest.fixture
def nights(log, tmp_path, fourrates):
    return Night(log, tmp_path, fourrates)


def test_every_night_finds_what_all_at_once_finds_and_reports_it_once(nights):
    found = []
    for night in range(1, DAYS + 1):
        nights.write(night)
        if night >= 5:
            found += [(night, one) for one in nights.detect()[1]["findings"]]
    drifts = [(night, one) for night, one in found if one["kind"] == "drift" and one["segment"] == "FR"]
    (night, drift), *_ = [(night, one) for night, one in drifts if one["started_time"] >= "2026-06-25"]
    assert 31 <= night <= 45
    assert "2026-06-26" <= drift["started_time"] < "2026-07-05"  # by when it happened: day 30 is 1 July
    assert len({one["started_time"][:10] for _, one in drifts}) == len(drifts)
    status, last = nights.detect("--fail-on", "open", "--fail-on", "no-events")
    _, whole = nights.detect(state=None)
    assert (status, last["new_events"], last["findings"]) == (1, 0, [])
    assert [one["segment"] for one in last["open"]] == [one["segment"] for one in whole["open"]] == ["FR"]
    assert last["open"][0]["now"]["tpr"]["now"] == pytest.approx(whole["open"][0]["now"]["tpr"]["now"], abs=0.05)


def test_what_is_accepted_is_normal_the_next_night(nights):
    for night in range(1, 51):
        nights.write(night)
    assert nights.detect()[1]["status"] == "drifted"
    assert nights.detect("--accept")[1]["status"] == "stable"
    nights.write(51)
    assert nights.detect("--fail-on", "open")[0] == 0


def test_a_state_without_late_labels_and_one_with_do_not_mix(nights, tmp_path):
    for night in range(1, 8):
        nights.write(night)
    nights.detect()
    plain = tmp_path / "plain.csv"
    plain.write_text("y_true,y_pred\n" + "1,1\n0,0\n" * 50)
    nights.run("detect", plain, "--state", tmp_path / "plain.state")
    given = ["--labels-from", tmp_path / "labels", "--state", tmp_path / "plain.state"]
    assert "saved without --labels-from" in nights.run("detect", tmp_path / "predictions", *given).err
    given = ["--labels-from", tmp_path / "labels", "--order", "arrival", "--state", tmp_path / "model.state"]
    assert "--order arrival" in nights.run("detect", tmp_path / "predictions", *given).err


def test_ripe_predictions_leave_and_labels_for_them_are_late():
    cohorts = Cohorts(LabelJoin(seed=1))
    times = np.arange(100.0) * DAY

    def add(ids, file=0):
        tags = cohorts.add(np.arange(len(ids)), None, None, times[ids], file)
        return cohorts.join.predict(ids, np.zeros(len(ids), int), tags=tags)

    cohorts.files.append("a")
    add(np.arange(100))
    pairs = cohorts.join.label(np.arange(0, 90), np.ones(90, int))
    cohorts.pair(pairs, times[pairs.tags] + DAY)
    until = cohorts.ripe_until()
    assert times[90] < until < times[99]
    again = Cohorts.from_bytes(cohorts.to_bytes())
    assert [b.rows.tolist() for b in again.batches(True, False)] == [list(range(90))]
    cohorts.drop(int(times[50]))
    assert [b.rows.tolist() for b in cohorts.batches(True, False)] == [list(range(50, 90))]
    cohorts.drop()
    late = cohorts.join.label([95], [1])
    cohorts.pair(late, None)
    assert [*cohorts.batches(True, False)] == []


def test_damaged_cohorts_are_refused_or_read_whole():
    cohorts = Cohorts(LabelJoin(seed=1))
    cohorts.files.append("a")
    tags = cohorts.add(np.arange(20), np.arange(20) % 2, None, np.arange(20.0), 0)
    cohorts.names = ["x", "y"]
    cohorts.join.predict(np.arange(20), np.ones(20, int), tags=tags)
    cohorts.pair(cohorts.join.label(np.arange(10), np.ones(10, int)), None)
    saved = cohorts.to_bytes()
    random = np.random.default_rng(5)
    for _ in range(300):
        cut = bytearray(saved)
        cut[random.integers(len(cut))] ^= int(random.integers(1, 256))
        with pytest.raises(ValueError):  # noqa: PT011 (every sentence is one about a damaged state)
            Cohorts.from_bytes(bytes(cut))


def run_in(folder, patience=None):
    """The command in a folder, killed after so many seconds unless it has ended: whether it was, and what it said."""
    command = [sys.executable, "-m", "fourrates", "detect", "predictions", "--labels-from", "labels", "--json"]
    command += ["--by", "country", "--budget", "60000", "--state", "model.state"]
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if patience is not None:
        time.sleep(patience)
        run.kill()
    out = run.communicate()[0]
    return run.returncode == -signal.SIGKILL, json.loads(out) if out.endswith(b"}\n") else None


@pytest.mark.slow
def test_a_night_killed_at_any_moment_and_run_again_finds_the_same(log, tmp_path):
    """What is on disk is the state of the night before or of this one, with all that waits for its label."""
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        folder.mkdir()
    nights = [Night(log, folder, None) for folder in folders]
    random, died = np.random.default_rng(9), 0
    for last in range(20, 41):
        for one in nights:
            for night in range(1, 21) if last == 20 else [last]:
                one.write(night)
        began, printed = time.perf_counter(), []
        _, expected = run_in(folders[0])
        took = time.perf_counter() - began
        for patience in (*(took * random.uniform(0.2, 1.0, 2)), None):
            was_killed, out = run_in(folders[1], patience)
            printed += [] if out is None else [out]
            died += was_killed
            if not was_killed:
                break
        assert expected["findings"] in [one["findings"] for one in printed]  # printed first, then saved
        for one in printed:
            assert one["findings"] in (expected["findings"], [])
            assert (one["open"], one["now"]) == (expected["open"], expected["now"])
    assert died > 10


def test_first_nights_without_labels_or_with_one_class_wait(fourrates, tmp_path):
    for name in ("predictions", "labels"):
        (tmp_path / name).mkdir()
    rows = "".join(f"{i},2026-06-01T{i:02}:00,{'bad' if i % 4 else 'ok'}\n" for i in range(20))
    (tmp_path / "predictions" / "1.csv").write_text(f"id,time,prediction\n{rows}")
    words = ["detect", tmp_path / "predictions", "--labels-from", tmp_path / "labels", "--state", tmp_path / "state"]
    assert fourrates(*words, "--fail-on", "no-events").status == 1
    (tmp_path / "predictions" / "1.csv").write_text(f"id,time,prediction\n{rows.replace('ok', 'bad')}")
    (tmp_path / "labels" / "1.csv").write_text("id,label\n" + "".join(f"{i},bad\n" for i in range(15)))
    ran = fourrates(*words)
    assert (ran.status, "only one label, 'bad'" in ran.err, (tmp_path / "state").exists()) == (0, True, False)
    (tmp_path / "labels" / "2.csv").write_text("id,label\n" + "".join(f"{i},ok\n" for i in range(15, 20)))
    (tmp_path / "predictions" / "2.csv").write_text("id,time,prediction\n21,2026-06-02,ok\n")
    ran = fourrates(*words, "--json")
    assert (ran.status, json.loads(ran.out)["events"]) == (0, 20)
