"""Nothing lost, nothing twice: `fourrates serve` killed at random moments under load, and the books checked.

Eight clients send pairs, pairs with ids and segments, and predictions with late labels; each repeats a request with its
key until it is answered, some requests once more after that, and some ids under another key. Meanwhile the server is
killed (SIGKILL) at random moments, or by a failpoint after a commit and before its answers; with PostgreSQL the
database as well. Alerts go to a webhook that refuses some of them and hangs up on others. At the end, exactly: counts
by monitor and cell are what was sent, drifts are those of detectors over the journal, and every drift that did not end
at once was told by an alert, which may have been delivered more than once, but under one id.

    python benchmarks/serve_kill.py --kills 200
    python benchmarks/serve_kill.py --kills 200 --database postgresql
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from drawn import keep
from servers import Client, Postgres, Server

import fourrates as fr
from fourrates.plain import state_record
from fourrates.serve.batch import CONFIG, EVENTS, LABELS, PREDICTIONS, decode
from fourrates.serve.settings import Settings
from fourrates.serve.store import open_store
from fourrates.serve.store.base import Store

ARL = 2_000  # small, so that there are drifts to compare
MONITORS = {
    "pairs": {"arl": ARL},
    "segments": {"arl": ARL, "by": ["country"]},
    "late": {"arl": ARL, "by": ["country"], "max_wait": "30 days"},
}
COUNTRIES = ("DE", "FR", "IT", "PL")
PATIENCE = 300.0  # seconds for what must end, or arrive, at last


class Hook:
    """A webhook: notes what is delivered, refuses one in five, and hangs up on one in ten before it answers."""

    def __init__(self, seed: int) -> None:
        dice, hook = random.Random(seed), self
        self.notifications: dict[str, set[str]] = {}  # from a finding to the ids under which it was told
        self.deliveries = self.refused = self.hung_up = 0
        self.lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["content-length"]))
                if len(sent) < int(self.headers["content-length"]):
                    return  # the server was killed while it sent this
                body = json.loads(sent)
                with hook.lock:
                    throw = dice.random()
                    hook.refused += throw < 0.2
                    hook.hung_up += 0.2 <= throw < 0.3
                    if throw >= 0.2:
                        hook.note(body)
                if 0.2 <= throw < 0.3:
                    return
                with suppress(OSError):
                    self.send_response(503 if throw < 0.2 else 200)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def note(self, body: dict[str, Any]) -> None:
        """Count a delivery, and which findings it told under which id."""
        self.deliveries += 1
        for alert in body["alerts"]:
            for finding in alert["findings"]:
                self.notifications.setdefault(finding, set()).add(body["id"])

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


class Sender(threading.Thread):
    """A client: it sends until it is asked to end, and keeps the books."""

    def __init__(self, number: int, seed: int, *ports: int) -> None:
        super().__init__(daemon=True)
        self.number, self.ports = number, ports
        self.draw = np.random.default_rng([seed, number])
        self.ending = threading.Event()
        self.cells: dict[str, Counter[tuple[int, int]]] = {name: Counter() for name in MONITORS}
        self.requests = self.retries = self.repeats = 0
        self.problem: str | None = None

    def run(self) -> None:
        """Send until it is asked to end."""
        try:
            turn = 0
            while not self.ending.is_set():
                turn += 1
                self._turn(turn)
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"

    def _turn(self, turn: int) -> None:
        name = [*MONITORS][int(self.draw.integers(len(MONITORS)))]
        size = int(self.draw.choice([1, 5, 40, 300]))
        truths = (self.draw.random(size) < 0.3).astype(int)
        wrong = 0.15 if (turn // 40) % 2 == 0 else 0.35  # something to find
        preds = truths ^ (self.draw.random(size) < wrong)
        ids = [f"{self.number}-{turn}-{row}" for row in range(size)]
        by = {"country": self.draw.choice(COUNTRIES, size).tolist()}
        y_true, y_pred = truths.tolist(), preds.tolist()
        key = f"{self.number}-{turn}"
        if name == "pairs":
            self._send(name, "events", {"y_true": y_true, "y_pred": y_pred}, key)
        elif name == "segments":
            body = {"y_true": y_true, "y_pred": y_pred, "id": ids, "by": by}
            self._send(name, "events", body, key)
            if self.draw.random() < 0.1:  # without its key: the ids must see to it
                self.repeats += 1
                answer = self._send(name, "events", body, None)
                if answer["accepted"] != 0 or answer["repeated"] != size:
                    raise AssertionError(f"{size} ids sent again were answered with {answer}")
        else:
            self._send(name, "predictions", {"id": ids, "y_pred": y_pred, "by": by}, f"{key}p")
            order = self.draw.permutation(size).tolist()
            labels = {"id": [ids[i] for i in order], "y_true": [y_true[i] for i in order]}
            self._send(name, "labels", labels, f"{key}l")
        self.cells[name].update(zip(y_true, y_pred, strict=True))

    def _send(self, name: str, kind: str, body: dict[str, Any], key: str | None) -> dict[str, Any]:
        """Send until it is answered, by the next of the servers each time."""
        headers = {} if key is None else {"Idempotency_Key": key}
        first: dict[str, Any] | None = None
        while True:
            self.requests += 1
            try:
                with Client(self.ports[self.retries % len(self.ports)], timeout=10) as client:
                    status, answer = client.call("POST", f"/api/monitors/{name}/{kind}", body, **headers)
            except (OSError, http.client.HTTPException):
                self.retries += 1
                time.sleep(0.2)
                continue
            if status == 503:
                self.retries += 1
                time.sleep(0.2)
                continue
            if status != 200:
                raise AssertionError(f"{status}: {answer}")
            if first is not None:
                if answer != first:
                    raise AssertionError(f"the same key was answered with {first} and {answer}")
                return answer
            if key is None or self.draw.random() >= 0.1:
                return answer
            first = answer  # once more, to see that it counts once
            self.repeats += 1


def expected(name: str, batches: list[Any]) -> tuple[Counter[tuple[Any, ...]], dict[str | None, Any]]:
    """What detectors over the journal find (kind, segment and event), and what is open after it, by segment."""
    arl = 2 * ARL if "by" in MONITORS[name] else ARL
    whole = fr.FourRates(arl)
    bank = fr.Bank(fr.FourRates(2 * ARL, mix="ignore"))
    share = {"after": "restart", "mix": "ignore", "rates": ["tpr"]}  # if all are positive, tpr is that of predictions
    predicted, keyed_predicted = fr.FourRates(10 * arl, **share), fr.Bank(fr.FourRates(20 * ARL, **share))
    join, seen = fr.LabelJoin(), set[Any]()
    found: Counter[tuple[Any, ...]] = Counter()
    names: list[str] = []
    for batch in batches:
        codes = np.frombuffer(batch.segment_codes, "<u4")
        for one in batch.segments:
            if one not in names:
                names.append(one)
        segments = np.array([names.index(one) for one in batch.segments], np.int64)[codes] if batch.segments else None
        truths, preds = batch.codes("truths"), batch.codes("preds")
        if batch.kind == EVENTS and batch.ids:
            join.predict(batch.listed_ids(), preds, tags=segments)
            pairs = join.label(batch.listed_ids(), truths)
        elif batch.kind == PREDICTIONS:
            ids = batch.listed_ids()
            each = batch.listed_ids()
            new = np.array([one not in seen for one in each])
            seen |= {*each}
            predicted.update_many(np.ones(int(new.sum()), np.int8), preds[new])
            shifts = [(None, finding) for finding in predicted.findings]
            if segments is not None:
                keyed_predicted.update(segments[new], np.ones(int(new.sum()), np.int8), preds[new])
                shifts += [(names[keyed.key], keyed.finding) for keyed in keyed_predicted.findings]
            for segment, finding in shifts:
                found["prediction_shift", segment, finding.at] += 1
            pairs = join.predict(ids, preds, tags=segments)
        elif batch.kind == LABELS:
            pairs = join.label(batch.listed_ids(), truths)
        else:
            pairs = None
        if pairs is not None:
            truths, preds, segments = pairs.truths, pairs.preds, pairs.tags
        whole.update_many(truths, preds)
        for finding in whole.findings:
            found[finding.kind, None, finding.at] += 1
        if "by" in MONITORS[name]:
            bank.update(segments, truths, preds)
            for keyed in bank.findings:
                found[keyed.finding.kind, names[keyed.key], keyed.finding.at] += 1
    streams = {None: whole, **{names[key]: bank[key] for key in bank}}
    return found, {
        segment: {rate: state_record(of) for rate, of in one.rates.items() if of.state != "normal"}
        for segment, one in streams.items()
        if one.open is not None
    }


def check(settings: Settings, senders: list[Sender], hook: Hook, port: int) -> dict[str, Any]:
    """Compare the books; an AssertionError says what does not fit."""
    sent = {name: Counter[tuple[int, int]]() for name in MONITORS}
    for sender in senders:
        for name, cells in sender.cells.items():
            sent[name] += cells
    totals: dict[str, Any] = {"events": 0, "findings": 0, "open": 0, "journal": 0}
    drifts, ended = set[str](), set[str]()
    with Client(port) as client:
        shown = {name: client.call("GET", f"/api/monitors/{name}")[1] for name in MONITORS}
    for name, cells in sent.items():
        counted = shown[name]["confusion"]
        have = Counter({(i, j): counted[i][j] for i in range(2) for j in range(2) if counted[i][j]})
        assert have == cells, f"{name}: sent {cells}, counted {have}"
        assert shown[name]["waiting"] == shown[name]["waiting_labels"] == 0, name
        totals["events"] += cells.total()
    store = open_store(settings, owner=False)
    try:
        for row in store.monitors():
            batches = [entry.batch for one in store.journal(row.id, 0) for entry in decode(one.body)]
            batches = [one for one in batches if one.kind != CONFIG]
            totals["journal"] += len(batches)
            have, closed = Counter[tuple[Any, ...]](), set[str | None]()
            for one in store.findings(row.id, 1_000_000):
                body = json.loads(one.body)
                segment = None if body["segment"] is None else json.dumps([*body["segment"].values()])
                have[body["kind"], segment, body["at"]] += 1
                if body["kind"] == "drift" or body["closes"]:  # an alert, and what resolves it
                    drifts.add(one.id)
                    closed |= {segment} if body["closes"] else set()
                    ended |= {one.id} if segment in closed else set()  # the latest come first
            want, standing = expected(row.name, batches)
            shown_open = {}
            for one in shown[row.name]["open"]:
                segment = one["segment"] and json.dumps([*one["segment"].values()])
                assert want["drift", segment, one["at"]], f"{row.name}: {segment} is open since {one['at']}"
                shown_open[segment] = {
                    rate: {name: of[name] for name in ("state", "normal", "now", "enough")}
                    for rate, of in one["now"].items()
                }
            assert shown_open == standing, f"{row.name}: open are {shown_open}, of the journal {standing}"
            totals["open"] += len(standing)
            assert have == want, f"{row.name}: stored {have - want}, of the journal {want - have}"
            totals["findings"] += have.total()
        return totals | check_alerts(hook, drifts, ended, store)
    finally:
        store.close()


def waiting(store: Store) -> set[str]:
    """Findings of segments that are told when the alert of the overall stream ends."""
    found: set[str] = set()
    for body in store.documents("alerts").values():
        for alert in json.loads(body).get("alerts", {}).values():
            found |= {*alert.get("findings", ())}
    return found


def check_alerts(hook: Hook, drifts: set[str], ended: set[str], store: Store) -> dict[str, Any]:
    """Every drift was told, under one id, is part of an alert that is not over, or was over before it could be told."""
    until = time.monotonic() + PATIENCE
    while drifts - ended - waiting(store) - hook.notifications.keys() and time.monotonic() < until:
        time.sleep(0.2)
    told, later = hook.notifications, waiting(store)
    assert drifts - ended - later <= told.keys() <= drifts, (
        f"not told: {drifts - ended - later - told.keys()}; told, and not in the store: {told.keys() - drifts}"
    )
    twice = {finding: ids for finding, ids in told.items() if len(ids) > 1}
    assert not twice, f"told under several ids: {twice}"
    return {
        "drifts told": len(told),
        "notifications": len(set[str]().union(*told.values())),
        "deliveries": hook.deliveries,
        "refused by the webhook": hook.refused,
        "hung up on": hook.hung_up,
    }


def main(
    kills: int, database: str, seed: int, clients: int = 8, pace: float = 0.6, minutes: float = 1e9
) -> dict[str, Any]:
    dice = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(Postgres()) if database == "postgresql" else None
        options: list[str] = []
        if postgres is not None:
            options += ["--database", postgres.url]
        settings = Settings(data=folder / "data", database=None if postgres is None else postgres.url)
        server = Server(folder / "data", *options, keep_events=10**9, snapshot_bytes=20_000, alert_interval=0)
        server.start()
        stack.callback(lambda: server.kill())
        hook = Hook(seed)
        stack.callback(hook.close)
        with Client(server.port) as client:
            for name, config in MONITORS.items():
                told = config | {"alerts": {"channels": [hook.url]}}
                assert client.call("PUT", f"/api/monitors/{name}", told)[0] == 201
        senders = [Sender(number, seed, server.port) for number in range(clients)]
        for sender in senders:
            sender.start()
        by_failpoint = databases = 0
        began = time.monotonic()
        done = 0
        for kill in range(kills):
            if time.monotonic() - began > 60 * minutes:
                break
            done += 1
            assert server.process is not None
            if kill % 4 == 3:  # it dies by itself: on disk, and not answered
                server.kill()
                server.start(wait=False, FOURRATES_FAILPOINT=f"committed:{dice.randint(1, 30)}")  # perhaps at once
                server.process.wait(PATIENCE)
                by_failpoint += 1
            else:
                time.sleep(dice.uniform(0.02, pace))
                if postgres is not None and dice.random() < 0.25:
                    postgres.kill()
                    databases += 1
                    if dice.random() < 0.5:
                        time.sleep(dice.uniform(0, 0.3))
                    else:
                        server.kill()
                    postgres.start()
                server.kill()
            server.start(wait=dice.random() < 0.8)
            for sender in senders:
                assert sender.problem is None, sender.problem
            if sys.stderr.isatty():
                print(f"\r{kill + 1} kills", end="", file=sys.stderr)
        server.wait()
        time.sleep(1.0)
        for sender in senders:
            sender.ending.set()
        for sender in senders:
            sender.join(PATIENCE)
            assert not sender.is_alive()
            assert sender.problem is None, sender.problem
        totals = check(settings, senders, hook, server.port)
        server.stop()
        log = (folder / "data.log").read_text()
        assert '"level": "error"' not in log or postgres is not None, log[-3000:]
        totals |= {
            "database": database,
            "kills": done,
            "by failpoint": by_failpoint,
            "databases killed": databases,
            "requests": sum(one.requests for one in senders),
            "retries": sum(one.retries for one in senders),
            "sent again": sum(one.repeats for one in senders),
            "seconds": round(time.monotonic() - began),
        }
    return totals


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="end sooner, with fewer kills")
    given = parser.parse_args()
    result = main(given.kills, given.database, given.seed, minutes=given.minutes)
    print(f"nothing lost, nothing twice: {result}")
    if result["kills"] >= 50:
        keep(f"serve_kill_{given.database}", result)
