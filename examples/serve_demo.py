"""``make serve-demo``: the service, fed with a live stream of card transactions that goes wrong before your eyes.

A server of its own on the loopback, and three monitors: ``card fraud`` gets predictions and, seconds later and in
another order, their labels, from three countries; the classifier goes blind to French frauds and is repaired, again
and again.
``spam filter`` has three classes and ``churn`` few events; neither of them ever changes.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from fourrates.escaping import printable
from fourrates.streams.fraud import BLIND, SOUND

STEP = 0.25  # seconds of the stream between two requests
RATE = 600  # transactions a second
COUNTRIES = {"DE": 0.4, "FR": 0.35, "IT": 0.25}
BROKEN = "FR"
SOUND_FOR, BLIND_FOR, PERIOD = 15.0, 45.0, 120.0  # seconds: the first of each period, then until it is repaired
LABEL_AFTER = 2.0  # seconds, on average
NEVER = 0.01  # of the labels
REFERENCE = 20_000  # transactions of the validation

FRAUD: dict[str, Any] = {
    "labels": [0, 1],
    "positive": 1,
    "arl": 1_000_000,
    "by": ["country"],
    "reference": [[round(REFERENCE * share) for share in row] for row in SOUND],
    "max_wait": "1 day",
}
SPAM: dict[str, Any] = {"labels": ["ham", "newsletter", "spam"], "arl": 100_000}
CHURN: dict[str, Any] = {"labels": [0, 1], "positive": 1, "arl": 100_000}


@dataclass(slots=True)
class Transactions:
    """Card transactions and their late labels, step by step; same seed, same stream."""

    seed: int = 1
    sent: int = 0
    steps: int = 0
    due: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def is_blind(self) -> bool:
        """Whether the classifier overlooks the frauds of one country now."""
        return SOUND_FOR <= self.steps * STEP % PERIOD < SOUND_FOR + BLIND_FOR

    def step(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The predictions of the next step, and the labels that arrive with it, as bodies of requests."""
        count = int(RATE * STEP)
        country = self.random.choice(list(COUNTRIES), count, p=list(COUNTRIES.values()))
        draw = self.random.random(count)
        sound, blind = (np.searchsorted(np.cumsum(law)[:3], draw, side="right") for law in (SOUND, BLIND))
        cells = np.where((country == BROKEN) & self.is_blind, blind, sound)
        ids = [f"t{self.sent + i}" for i in range(count)]
        wait = 1 + self.random.exponential(LABEL_AFTER / STEP, count).astype(np.int64)
        comes = self.random.random(count) >= NEVER
        for name, truth, steps in zip(np.array(ids)[comes], cells[comes] // 2, wait[comes], strict=True):
            self.due.setdefault(self.steps + int(steps), []).append((str(name), int(truth)))
        arrived = self.due.pop(self.steps, [])
        self.random.shuffle(arrived)
        self.sent += count
        self.steps += 1
        predictions = {"id": ids, "y_pred": (cells % 2).tolist(), "by": {"country": country.tolist()}}
        return predictions, {"id": [name for name, _ in arrived], "y_true": [truth for _, truth in arrived]}


def pairs(random: np.random.Generator, labels: Sequence[Any], count: int) -> dict[str, Any]:
    """Pairs of a classifier that is right nine times in ten and stays so."""
    truth = random.integers(0, len(labels), count)
    wrong = random.random(count) < 0.1
    pred = np.where(wrong, (truth + random.integers(1, len(labels), count)) % len(labels), truth)
    return {"y_true": [labels[i] for i in truth], "y_pred": [labels[i] for i in pred]}


class Service:
    """The service at an address, as a program without further libraries speaks to it."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address, self.token = address.rstrip("/"), token

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Send a request and return the answer; an error carries what the server said."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(f"{self.address}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.code} {error.read().decode(errors='replace')}") from error

    def monitor(self, name: str, rest: str = "") -> str:
        """The path of a monitor."""
        return f"/api/monitors/{quote(name, safe='')}{rest}"


class Demo:
    """The stream and where it goes; each step is a quarter of a second of it."""

    def __init__(self, service: Service, seed: int = 1) -> None:
        self.service = service
        self.transactions = Transactions(seed)
        self.random = np.random.default_rng(seed + 1)
        # An id counts once, for ever: another run has ids of its own.
        self.run = f"{time.time_ns():x}"

    def create(self) -> None:
        """Make the monitors, where they are not there yet."""
        for name, config in (("card fraud", FRAUD), ("spam filter", SPAM), ("churn", CHURN)):
            self.service.ask(self.service.monitor(name), config, "PUT")

    def step(self) -> list[Any]:
        """Send what happens next; the ids of what was found by it."""
        ask, path = self.service.ask, self.service.monitor
        found = []
        for rest, body in zip(("/predictions", "/labels"), self.transactions.step(), strict=True):
            if body["id"]:
                body["id"] = [f"{self.run}-{name}" for name in body["id"]]
                found += ask(path("card fraud", rest), body)["findings"]
        ask(path("spam filter", "/events"), pairs(self.random, SPAM["labels"], 20))
        if self.transactions.steps % 8 == 0:
            ask(path("churn", "/events"), pairs(self.random, CHURN["labels"], 1))
        return found


@contextmanager
def served(folder: Path, port: int) -> Iterator[Service]:
    """The service on the loopback, until the block ends."""
    command = [sys.executable, "-m", "fourrates", "serve", "--data", str(folder), "--port", str(port)]
    process = subprocess.Popen(command)
    service = Service(f"http://127.0.0.1:{port}")
    try:
        wait_until_ready(service, process)
        yield service
    finally:
        process.terminate()
        process.wait(30)


def wait_until_ready(service: Service, process: subprocess.Popen[bytes]) -> None:
    """Return when the service takes requests; raise a RuntimeError if it ends or takes too long."""
    for _ in range(300):
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"{service.address}/readyz", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the service did not start within half a minute")


def run(service: Service, seconds: float, seed: int = 1) -> None:
    """Feed the service in real time, and print what happens and what it finds."""
    demo = Demo(service, seed)
    demo.create()
    print(f"\nOpen {service.address}/ in a browser. Ctrl-C ends it.\n")
    began, blind, printed = time.monotonic(), False, set[Any]()
    while demo.transactions.steps * STEP < seconds:
        now = demo.transactions.steps * STEP
        if demo.transactions.is_blind != blind:
            blind = not blind
            what = f"overlooks most frauds in {BROKEN} now" if blind else "is repaired"
            print(f"{now:5.0f} s  the classifier {what}", flush=True)
        ids = demo.step()
        if ids:
            for finding in reversed(service.ask(service.monitor("card fraud", "/drifts?limit=10"))["drifts"]):
                if finding["id"] in ids and finding["id"] not in printed:
                    printed.add(finding["id"])
                    print(f"{now:5.0f} s  found: {printable(str(finding['text']))}", flush=True)
        time.sleep(max(0.0, began + demo.transactions.steps * STEP - time.monotonic()))


def main() -> None:
    """Run the demonstration until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("build/serve-demo"), help="the folder of the service")
    parser.add_argument("--port", type=int, default=8421)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long; for ever")
    given = parser.parse_args()
    given.data.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the service ends with it, however it ends
    try:
        with served(given.data, given.port) as service:
            run(service, given.seconds)
    except KeyboardInterrupt:
        print("ended")


if __name__ == "__main__":
    main()
