"""kill -9 at random moments: `watch --state` with rotation, `detect --state`, `Bank.save` and the spool of alerts.

A writer appends events to a log in pieces that end anywhere and rotates it, by rename and by copying and emptying it; a
receiver takes the alerts and now and then fails. Meanwhile the process that watches is killed at random moments and
started again. At the end: the events counted are those written, the drifts are those of one detector over all of them,
every drift was delivered at least once, under one id, and every file can be read. `detect` is killed while it reads a
log that grows, a process that saves a bank while it does so: each event must have counted once.

    python benchmarks/kill.py [--kills 200] [--seed 0] [--out docs/_site/results/kill.json]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import fourrates as fr
from fourrates.alerts import Spool, Webhook
from fourrates.cli.states import Checkpoint, Progress
from fourrates.watch import Watch

CALM, BROKEN = [(1, 1), (0, 0)], [(1, 0), (0, 0)]
# Changes that come back again and again raise the dispersion until they are no news; here each is to be an alarm.
DETECTOR = "FourRates(dispersion=1)"


@dataclass
class Outcome:
    """What came of it: how often it was killed, and everything that was not as it must be."""

    kills: int = 0
    open: int = 0  # kills while a drift was open, by the state on disk
    events: int = 0
    alerts: int = 0
    rotations: int = 0
    deliveries: int = 0
    wrong: list[str] = field(default_factory=list)


class Receiver(ThreadingHTTPServer):
    """Takes alerts; one answer in four is an error."""

    daemon_threads = True

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.draw = random.Random(seed)
        self.taken: Counter[str] = Counter()
        self.bodies: dict[str, bytes] = {}
        self.differing: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, *_: object) -> None:
        """A client that was killed is nothing to report."""


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if len(body) < int(self.headers["Content-Length"]):
            return  # whoever sent it was killed
        id = self.headers["Webhook-Id"]
        if self.server.bodies.setdefault(id, body) != body or json.loads(body)["id"] != id:
            self.server.differing.append(id)
        if self.server.draw.random() < 0.25:
            self.send_error(503)
            return
        self.server.taken[id] += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Writer(threading.Thread):
    """Appends events in pieces that end anywhere, and rotates the log."""

    def __init__(self, log: Path, seed: int, copytruncate: bool, pause: float) -> None:
        super().__init__(daemon=True)
        self.pause = pause
        self.log, self.draw, self.copytruncate = log, random.Random(seed), copytruncate
        self.pairs: list[tuple[int, int]] = []
        self.rotations = 0
        self.ended, self.may_rotate = threading.Event(), threading.Event()
        log.write_text("y_true,y_pred\n")

    def run(self) -> None:
        """Write until told to end."""
        while not self.ended.is_set():
            calm = CALM * self.draw.randrange(150, 400)
            for part in (calm, BROKEN * 30):
                self._append(part)
                if self.ended.wait(self.draw.random() * self.pause):
                    break
            if self.may_rotate.is_set() and self.draw.random() < 0.3:
                self._rotate()
        self._append(CALM)

    def _append(self, pairs: list[tuple[int, int]]) -> None:
        text = "".join(f"{truth},{pred}\n" for truth, pred in pairs)
        self.pairs += pairs
        while text:
            cut = self.draw.randrange(1, 4000)
            with self.log.open("a") as file:
                file.write(text[:cut])
            text = text[cut:]
            time.sleep(0.001)

    def _rotate(self) -> None:
        self.rotations += 1
        if self.copytruncate and self.draw.random() < 0.5:
            shutil.copy(self.log, f"{self.log}.{self.rotations}")
            os.truncate(self.log, 0)
            # Something that tells this file from the one before: its first lines are those of an empty log otherwise.
            with self.log.open("a") as file:
                file.write("\n" * (self.rotations % 50 + 1))
            return
        os.rename(self.log, f"{self.log}.{self.rotations}")
        self.log.write_text("y_true,y_pred\n")


def watch(folder: Path, kills: int, seed: int, copytruncate: bool = False, longest: float = 0.8) -> Outcome:
    """Kill `watch --state` so many times while a log is written and rotated."""
    log, state = folder / "log.csv", folder / "state"
    draw, found = random.Random(seed), Outcome()
    receiver = Receiver(seed)
    # No faster than what is killed all the time can follow, most of which time it is starting.
    writer = Writer(log, seed, copytruncate, pause=longest)
    writer.start()
    command = [sys.executable, "-m", "fourrates", "watch", log, "--state", state, "--no-warnings"]
    command += ["--detector", DETECTOR, "--alert", receiver.url]
    environment = os.environ | {"FOURRATES_ALERT_SECONDS": "120"}
    errors = (folder / "stderr").open("w+")
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
        _wait_for_work(state, process, 10.0 if draw.random() < 0.8 else draw.random())
        time.sleep(draw.random() * longest)
        if process.poll() is not None:
            found.wrong.append(f"ended by itself with status {process.returncode}")
        process.kill()
        process.wait()
        found.kills += 1
        if state.exists() and (saved := Checkpoint.load(state)) is not None:
            found.open += Watch.from_bytes(saved.watch).now().status == "drifted"
            if saved.position is not None:  # a file that is rotated before it was ever opened is not followed
                writer.may_rotate.set()
    writer.ended.set()
    writer.join()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
    _wait_for_work(state, process, 30.0)
    end = time.monotonic() + 300
    while _events(state) < len(writer.pairs) and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    status = process.wait(180)
    errors.seek(0)
    text = errors.read()
    errors.close()
    if status != 0 or "Traceback" in text:
        found.wrong.append(f"the last run ended with status {status}: {text[-500:]}")
    found.events, found.rotations = _events(state), writer.rotations
    if found.events != len(writer.pairs):
        found.wrong.append(f"{found.events} events counted, {len(writer.pairs)} written")
    detector = _uninterrupted(found, Watch.from_bytes(Checkpoint.load(state).watch), writer.pairs)
    alerts = [finding.at for finding in detector.findings if finding.kind == "drift" or finding.closes]
    _compare(found, receiver, alerts)
    receiver.shutdown()
    receiver.server_close()
    return found


def _uninterrupted(found: Outcome, watch: Watch, pairs: list[tuple[int, int]]) -> fr.FourRates:
    """The detector that nothing happened to, after the last event; the saved one must be as it is."""
    detector = fr.FourRates(dispersion=1)
    detector.update_many(*map(list, zip(*pairs, strict=True)))
    saved: Any = watch.segments[None]
    for name in ("events", "rates", "open", "evidence", "warning_since", "confusion"):
        if repr(getattr(saved, name)) != repr(getattr(detector, name)):
            found.wrong.append(f"{name} of the saved detector is another than that of an uninterrupted one")
    return detector


def _wait_for_work(state: Path, process: subprocess.Popen[bytes], seconds: float) -> None:
    """Until the process has saved its state for the first time, or so many seconds: it takes a while to start."""
    before = state.stat().st_mtime_ns if state.exists() else 0
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if state.exists() and state.stat().st_mtime_ns != before:
            return
        time.sleep(0.01)


def _events(state: Path) -> int:
    saved = Checkpoint.load(state) if state.exists() else None
    return 0 if saved is None else Watch.from_bytes(saved.watch).events


def _compare(found: Outcome, receiver: Receiver, wanted: list[int]) -> None:
    """Each drift under one id, delivered at least once, and nothing else."""
    by_event: dict[int, set[str]] = {}
    for id in receiver.taken:
        by_event.setdefault(json.loads(receiver.bodies[id])["at"], set()).add(id)
    found.alerts, found.deliveries = len(wanted), receiver.taken.total()
    if sorted(by_event) != wanted:
        lost, more = set(wanted) - set(by_event), set(by_event) - set(wanted)
        found.wrong.append(f"drifts never delivered: {sorted(lost)[:5]}; delivered but not there: {sorted(more)[:5]}")
    found.wrong += [f"drift at {at} under {len(ids)} ids" for at, ids in by_event.items() if len(ids) > 1]
    found.wrong += [f"alert {id} with different contents" for id in receiver.differing]


PUTTER = """
import sys, itertools
from fourrates.alerts import Spool, Webhook
spool = Spool(sys.argv[1], [Webhook(sys.argv[2])], first_pause=0.01, longest_pause=0.1)
for number in itertools.count(int(sys.argv[3])):
    spool.put({"id": f"a{number}", "at": number})
    print(number, flush=True)
"""


def spool(folder: Path, kills: int, seed: int) -> Outcome:
    """Kill a process that puts alerts into a spool and delivers them; each that was put must arrive."""
    draw, found = random.Random(seed), Outcome()
    receiver, path = Receiver(seed), folder / "alerts"
    put: list[int] = []
    for _ in range(kills):
        first = put[-1] + 1 if put else 0
        process = subprocess.Popen(
            [sys.executable, "-c", PUTTER, path, receiver.url, str(first)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        put += [int(line) for line in (process.stdout.readline(),) if line]
        time.sleep(draw.random() * 0.1)
        process.kill()
        put += [int(line) for line in process.communicate()[0].split("\n")[:-1]]
        found.kills += 1
    left = Spool(path, [Webhook(receiver.url)], first_pause=0.01, longest_pause=0.1).close(60)
    found.alerts, found.deliveries = len(put), receiver.taken.total()
    found.wrong += [f"{entry.id} undelivered" for entry in left]
    found.wrong += [f"a{number} put and never delivered" for number in put if not receiver.taken[f"a{number}"]]
    if unknown := set(receiver.taken) - {f"a{number}" for number in range(max(put) + 2)}:
        found.wrong.append(f"delivered and never put: {sorted(unknown)[:5]}")
    found.wrong += [f"alert {id} with different contents" for id in receiver.differing]
    receiver.shutdown()
    receiver.server_close()
    return found


def detect(folder: Path, kills: int, seed: int) -> Outcome:
    """Kill `detect --state` a number of times on a log that grows; whatever it told before it ended counts as told."""
    log, state = folder / "log.csv", folder / "state"
    draw, found = random.Random(seed), Outcome()
    writer = Writer(log, seed, copytruncate=False, pause=0.2)
    writer.start()
    command = [sys.executable, "-m", "fourrates", "detect", log, "--state", state, "--detector", DETECTOR, "--json"]
    told: set[int] = set()
    lasts = 1.0  # seconds that a run takes; most are killed near their end, where they save
    while found.kills < kills:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        began = time.monotonic()
        killed = False
        try:
            out, _ = process.communicate(timeout=lasts * draw.uniform(0.3, 1.1))
            lasts = 0.8 * lasts + 0.2 * (time.monotonic() - began)
        except subprocess.TimeoutExpired:
            process.kill()
            killed = True
            out, _ = process.communicate()
            lasts *= 1.02
        if not killed and process.returncode != 0:
            found.wrong.append(f"ended by itself with status {process.returncode}")
        found.kills += killed
        if out.endswith(b"}\n"):
            told.update(one["at"] for one in json.loads(out)["findings"] if one["kind"] == "drift")
        if state.exists() and (saved := Progress.load(state)) is not None:
            found.open += killed and Watch.from_bytes(saved.watch).now().status == "drifted"
    writer.ended.set()
    writer.join()
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        found.wrong.append(f"the last run ended with status {done.returncode}: {done.stderr.decode()[-500:]}")
        return found
    told.update(one["at"] for one in json.loads(done.stdout)["findings"] if one["kind"] == "drift")
    progress = Progress.load(state)
    watch = Watch.from_bytes(progress.watch)  # type: ignore[union-attr]
    found.events = watch.events
    if found.events != len(writer.pairs):
        found.wrong.append(f"{found.events} events counted, {len(writer.pairs)} written")
    detector = _uninterrupted(found, watch, writer.pairs)
    wanted = {finding.at for finding in detector.findings if finding.kind == "drift"}
    found.alerts, found.deliveries = len(wanted), len(told)
    if told != wanted:
        found.wrong.append(
            f"drifts never told: {sorted(wanted - told)[:5]}; told and not there: {sorted(told - wanted)[:5]}"
        )
    return found


BATCH = 500
SAVER = f"""
import os, sys, numpy as np, fourrates as fr
path = sys.argv[1]
bank = fr.Bank.load(path) if os.path.exists(path) else fr.Bank(arl=10_000)
while True:
    random = np.random.default_rng(bank.events)
    bank.update(random.integers(0, 50, {BATCH}), *random.integers(0, 2, (2, {BATCH})))
    bank.save(path)
    print(bank.events, flush=True)
"""


def bank(folder: Path, kills: int, seed: int) -> Outcome:
    """Kill a process that updates a bank and saves it after each batch; the next goes on from the file."""
    draw, found, path = random.Random(seed), Outcome(), folder / "bank"
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "-c", SAVER, path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(draw.random() * 0.05)
        process.kill()
        # The last line may be cut, the last but one is whole.
        saved = [int(line) for line in (first + process.communicate()[0]).split("\n")[:-1] if line]
        found.kills += 1
        found.events = fr.Bank.load(path).events
        if not saved or found.events - saved[-1] not in (0, BATCH):
            found.wrong.append(f"{found.events} events in the file after {saved[-1:]} were saved")
    wanted = fr.Bank(arl=10_000)
    while wanted.events < found.events:
        draws = np.random.default_rng(wanted.events)
        wanted.update(draws.integers(0, 50, BATCH), *draws.integers(0, 2, (2, BATCH)))
    if wanted.to_bytes() != fr.Bank.load(path).to_bytes():
        found.wrong.append("the bank is not the one that took every batch once")
    if left := [one.name for one in folder.iterdir() if one != path and not one.name.endswith(".part")]:
        found.wrong.append(f"left over: {left}")
    return found


def main() -> int:
    """Run them all; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/_site/results/kill.json"))
    options = parser.parse_args()
    results = {}
    for name, job in (
        ("the spool of alerts", spool),
        ("Bank.save", bank),
        ("detect --state", detect),
        ("watch --state, renames", watch),
        ("watch --state, renames and copytruncate", lambda *a: watch(*a, copytruncate=True)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            found = job(Path(folder), options.kills, options.seed)
        results[name] = vars(found)
        ratio = found.deliveries / max(found.alerts, 1)
        print(
            f"{name}: {found.kills} kills, {found.rotations} rotations, {found.events:,} events, "
            f"{found.alerts} alerts, {ratio:.3f} deliveries an alert, {len(found.wrong)} wrong",
            *found.wrong[:10],
            sep="\n  ",
            flush=True,
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if any(result["wrong"] for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
