"""kill -9 at random moments: two members of a group that watch a topic, and the broker.

A producer writes events of many keys to three partitions; some keys drift again and again. Two members watch the topic.
Meanwhile they are killed at random moments and replaced, some are asked to end, some are stopped until the group has
given their partitions away and then go on, not knowing it; and the broker is killed and started again. At the end the
topic is read once more by a plain consumer, and what it holds is given to one bank a partition. Asked for: the saved
states are these banks byte for byte, so no event is lost or counted twice; and the drifts produced are the drifts of
these banks, each at least once, under one id and with the same content.

    python benchmarks/kafka_kill.py [--keys 100000] [--kills 50] [--broker-kills 10] [--seed 0] [--keep]
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brokers import Kafka, Mock, query
from confluent_kafka import Consumer, Producer, TopicPartition
from drawn import keep

import fourrates as fr
from fourrates.alerts import stable_id
from fourrates.engines.kafka import Folder
from fourrates.engines.kafka.store import Partition
from fourrates.watch import MAX_SEGMENTS

TOPIC, DRIFTS, GROUP, PARTITIONS, ARL = "predictions", "drifts", "monitors", 3, 100_000
UNSTEADY = 60  # keys that drift again and again, after some 500 events of each
STARTED = 5.0  # seconds after which a member knows what to do when it is asked to end


@dataclass
class Outcome:
    """What came of it, and everything that was not as it must be."""

    keys: int = 0
    events: int = 0
    kills: int = 0
    ended: int = 0
    zombies: int = 0
    broker_kills: int = 0
    drifts: int = 0
    produced: int = 0
    wrong: list[str] = field(default_factory=list)


class Writer(threading.Thread):
    """Produces events, at a limited rate, until it is told to end; each key has its own partition."""

    def __init__(self, broker: Kafka | Mock, keys: int, unsteady: int, rate: float, seed: int, most: int) -> None:
        super().__init__(daemon=True)
        settings = {name: value for name, value in broker.settings.items() if not name.startswith(("session", "heart"))}
        self.producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 20, "log_level": 0, **settings})
        self.keys, self.unsteady, self.rate, self.most = keys, unsteady, rate, most
        self.draw = random.Random(seed)
        self.ended = threading.Event()
        self.written = 0

    def run(self) -> None:
        """Write every key once, then the unsteady ones often and the others now and then."""
        for key in range(self.keys):
            self._write(key, 0.0)
        began = time.monotonic()
        while not self.ended.is_set() and self.written < self.most:
            hot = self.draw.random() < 0.8
            key = self.draw.randrange(self.unsteady) if hot else self.draw.randrange(self.keys)
            broken = hot and (self.written // (self.unsteady * 500) + key) % 2 == 1
            self._write(key, 0.5 if broken else 0.05)
            ahead = (self.written - self.keys) / self.rate - (time.monotonic() - began)
            if ahead > 0.05:
                self.ended.wait(ahead)
        while self.producer.flush(5):
            pass

    def _write(self, key: int, error: float) -> None:
        truth = self.draw.random() < 0.5
        pred = truth != (self.draw.random() < error)
        value = json.dumps({"model": f"m{key}", "y_true": int(truth), "y_pred": int(pred)})
        while True:
            try:
                self.producer.produce(TOPIC, value, f"m{key}", partition=key % PARTITIONS)
                break
            except BufferError:
                self.producer.poll(0.2)
        self.written += 1
        if self.written % 100 == 0:
            self.producer.poll(0)


class Members:
    """The processes that watch."""

    def __init__(self, broker: Kafka | Mock, folder: Path, session: int) -> None:
        settings = {**broker.settings, "session.timeout.ms": session, "heartbeat.interval.ms": 300}
        url = f"kafka://{broker.address}/{TOPIC}?group={GROUP}&drifts={DRIFTS}{query(settings)}"
        self.command = [
            sys.executable,
            "-m",
            "fourrates",
            "watch",
            url,
            "--by",
            "model",
            "--budget",
            str(ARL),
            "--json",
        ]
        self.command += ["--no-warnings", "--state", str(folder / "state")]
        self.errors = (folder / "stderr").open("w+")
        self.began = [time.monotonic()] * 2
        self.running = [self.start(), self.start()]

    def start(self) -> subprocess.Popen[bytes]:
        """One more of them."""
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=self.errors)

    def replace(self, which: int, number: int, found: Outcome) -> None:
        """End one by a signal, and start another in its place."""
        process = self.running[which]
        if process.poll() is not None:
            found.wrong.append(f"a member ended by itself with status {process.returncode}")
        if number == signal.SIGTERM:
            time.sleep(max(0.0, self.began[which] + STARTED - time.monotonic()))
        process.send_signal(number)
        if process.wait(600) != 0 and number == signal.SIGTERM:
            found.wrong.append(f"a member that was asked to end did so with status {process.returncode}")
        self.running[which], self.began[which] = self.start(), time.monotonic()

    def close(self, found: Outcome) -> str:
        """Ask them to end; what they wrote to stderr."""
        time.sleep(max(0.0, max(self.began) + STARTED - time.monotonic()))
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                if process.wait(600):
                    found.wrong.append(f"a member ended with status {process.returncode}")
            except subprocess.TimeoutExpired:
                process.kill()
                found.wrong.append("a member did not end when it was asked to")
        self.errors.seek(0)
        text = self.errors.read()
        self.errors.close()
        if "Traceback" in text:
            found.wrong.append(text[text.index("Traceback") :][:2_000])
        return text


def states(folder: Path) -> dict[int, bytes]:
    """The saved states, as another member would find them."""
    store = Folder(folder / "state")
    claims = {partition: store.claim(f"{GROUP}/{TOPIC}/{partition}") for partition in range(PARTITIONS)}
    return {partition: claim.content for partition, claim in claims.items() if claim.content is not None}


def log(broker: Kafka | Mock, topic: str, partition: int) -> list[Any]:
    """All messages of a partition, by a consumer that belongs to no group."""
    settings = {name: value for name, value in broker.settings.items() if not name.startswith("enable")}
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "reader", "log_level": 0, **settings})
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
    consumer.assign([TopicPartition(topic, partition, first)])
    messages: list[Any] = []
    until = time.monotonic() + 900
    while len(messages) < end - first and time.monotonic() < until:
        messages += [one for one in consumer.consume(10_000, 1.0) if one.error() is None]
    consumer.close()
    assert len(messages) == end - first, f"{len(messages)} of {end - first} messages of {topic}/{partition} read"
    return messages


def expected(messages: list[Any], partition: int) -> tuple[fr.Bank, dict[str, int]]:
    """The bank of a partition that nothing happened to, and its findings: ids, and at which event of its stream."""
    bank = fr.Bank(fr.FourRates(float(ARL), positive=1), max_streams=MAX_SEGMENTS)  # as the command line makes it
    records = [json.loads(one.value()) for one in messages]
    columns = ([record[name] for record in records] for name in ("model", "y_true", "y_pred"))
    if records:
        bank.update(*columns)
    ids = {}
    for keyed in bank.findings:
        if (finding := keyed.finding).kind != "shift":  # which are not produced
            origin = f"{GROUP}/{TOPIC}/{partition}/{messages[keyed.event].offset()}"
            ids[stable_id(origin, finding.kind, keyed.key, finding.at)] = finding.at
    return bank, ids


def stream(streams: Any, key: str) -> str | None:
    """All that there is to say of a stream of a bank or a watch."""
    if key not in streams:
        return None
    one = streams[key]
    return repr((one.events, one.rates, one.open, one.evidence, one.warning_since))


def check(broker: Kafka | Mock, folder: Path, found: Outcome) -> None:
    """Compare states and drifts with those of banks that nothing happened to."""
    wanted: dict[str, int] = {}
    saved = states(folder)
    for partition in range(PARTITIONS):
        messages = log(broker, TOPIC, partition)
        bank, ids = expected(messages, partition)
        wanted |= ids
        found.events += len(messages)
        found.keys += len(bank)
        if partition not in saved:
            found.wrong.append(f"partition {partition} has no state")
            continue
        state = Partition.from_bytes(saved[partition])
        end = messages[-1].offset() + 1 if messages else None
        if state.next != end:
            found.wrong.append(f"partition {partition} was read up to {state.next}, it ends at {end}")
        watch = state.watch
        if watch.events != len(messages):
            found.wrong.append(f"partition {partition}: {watch.events} events counted, {len(messages)} written")
        keys = [key for key in {*bank, *watch.segments} if stream(watch.segments, key) != stream(bank, key)]
        if keys or {*watch.open_since} != {*bank.open_keys()}:
            found.wrong.append(f"partition {partition}: another state than that of an uninterrupted bank: {keys[:9]}")
    produced: Counter[str] = Counter()
    bodies: dict[str, bytes] = {}
    for partition in range(PARTITIONS if isinstance(broker, Kafka) else 4):
        for message in log(broker, DRIFTS, partition):
            id = json.loads(message.value())["id"]
            produced[id] += 1
            if bodies.setdefault(id, message.value()) != message.value():
                found.wrong.append(f"drift {id} with different contents")
    found.drifts, found.produced = len(wanted), produced.total()
    if lost := wanted.keys() - produced.keys():
        found.wrong.append(f"{len(lost)} drifts never produced, such as {sorted(lost)[:3]}")
    if more := produced.keys() - wanted.keys():
        found.wrong.append(f"{len(more)} ids that belong to no drift, such as {sorted(more)[:3]}")


def run(
    broker: Kafka | Mock,
    folder: Path,
    *,
    keys: int,
    kills: int,
    broker_kills: int,
    zombies: int,
    ends: int,
    seed: int,
    rate: float,
    most: int,
    unsteady: int = UNSTEADY,
    session: int = 3_000,
    pause: tuple[float, float] = (1.0, 6.0),
    patience: float = 1_200.0,
) -> Outcome:
    """Let all this happen, in an order that is drawn, and check what came of it."""
    found, draw = Outcome(), random.Random(seed)
    writer = Writer(broker, keys, unsteady, rate, seed, most)
    writer.start()
    members = Members(broker, folder, session)
    acts = ["kill"] * kills + ["broker"] * broker_kills + ["zombie"] * zombies + ["end"] * ends
    draw.shuffle(acts)
    time.sleep(session / 1_000 + pause[1])
    for number, act in enumerate(acts):
        which = draw.randrange(2)
        if act == "kill":
            members.replace(which, signal.SIGKILL, found)
            found.kills += 1
        elif act == "end":
            members.replace(which, signal.SIGTERM, found)
            found.ended += 1
        elif act == "zombie":
            members.running[which].send_signal(signal.SIGSTOP)
            time.sleep(session / 1_000 + 3)  # until the group has given its partitions away
            members.running[which].send_signal(signal.SIGCONT)
            found.zombies += 1
        elif isinstance(broker, Kafka):
            broker.kill()
            time.sleep(draw.random())
            broker.start()
            found.broker_kills += 1
        print(f"{number + 1} of {len(acts)}: {act}, {writer.written:,} events written", flush=True)
        time.sleep(draw.uniform(*pause))
    writer.ended.set()
    writer.join(600)
    _drain(broker, patience, found)
    text = members.close(found)
    (folder / "stderr.txt").write_text(text)
    check(broker, folder, found)
    return found


def _drain(broker: Kafka | Mock, patience: float, found: Outcome) -> None:
    """Wait until everything that was written has been taken and saved, and the group has been told."""
    settings = {name: value for name, value in broker.settings.items() if not name.startswith("enable")}
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": GROUP, "log_level": 0, **settings})
    partitions = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    ends = {one.partition: consumer.get_watermark_offsets(one, timeout=30)[1] for one in partitions}
    until = time.monotonic() + patience
    while time.monotonic() < until:
        committed = {one.partition: one.offset for one in consumer.committed(partitions, timeout=30)}
        if committed == ends:
            break
        time.sleep(0.5)
    else:
        found.wrong.append(f"the group came no further than {committed}, the topic ends at {ends}")
    consumer.close()


def main() -> int:
    """Run it on a real broker; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--broker-kills", type=int, default=10)
    parser.add_argument("--zombies", type=int, default=5)
    parser.add_argument("--ends", type=int, default=10)
    parser.add_argument("--rate", type=float, default=3_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--session", type=int, default=4_000, help="milliseconds until the group misses a member")
    parser.add_argument("--pause", type=float, nargs=2, default=(3.0, 9.0), help="seconds between two acts")
    parser.add_argument("--keep", action="store_true", help="write the numbers to where the pages read them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = Kafka(Path(folder) / "broker")
        try:
            found = run(
                broker,
                Path(folder),
                keys=options.keys,
                kills=options.kills,
                broker_kills=options.broker_kills,
                zombies=options.zombies,
                ends=options.ends,
                seed=options.seed,
                rate=options.rate,
                most=100_000_000,
                session=options.session,
                pause=tuple(options.pause),
            )
        finally:
            broker.close()
    print(
        f"{found.kills} kills of members, {found.ended} asked to end, {found.zombies} zombies, "
        f"{found.broker_kills} kills of the broker; {found.events:,} events of {found.keys:,} keys, "
        f"{found.drifts:,} drifts, {found.produced / max(found.drifts, 1):.3f} messages a drift; "
        f"wrong: {len(found.wrong)}",
        *found.wrong[:10],
        sep="\n  ",
    )
    if options.keep:
        keep("kafka_kill", vars(found))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
