"""How fast a topic is watched, next to bare consumer loops that only decode its messages.

A real broker on the loopback, three partitions, 100,000 keys, each in one partition. Three kinds of messages: one
event each as JSON, columns of 100 events as JSON, and columns of 10,000 events as Arrow. The members keep their state
in a folder, and save it as they go and at the end. One member next to one bare loop, or two next to two, which read as
the client library comes, and then with what the members tell it of fetching ahead; turns alternate. Two members are
timed from when both have partitions.

    python benchmarks/kafka_speed.py [--members 1] [--kinds 0 1 2] [--events 800000] [--turns 5] [--keep]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from brokers import Kafka, query
from confluent_kafka import Consumer, Producer, TopicPartition
from drawn import RESULTS, keep

from fourrates.engines.kafka import Monitor
from fourrates.engines.kafka.source import FETCHING

PARTITIONS, KEYS, ARL = 3, 100_000, 1e6
ASKED = 0.5  # of the bare loop
WAIT = 0.1  # seconds for messages; both wait for so long when the last ones have come
PEERS = {"bare": "as the client library comes", "ahead": "that fetch ahead as a member does"}
Columns = dict[str, np.ndarray]
spawn = multiprocessing.get_context("spawn")


def single(columns: Columns) -> Iterator[bytes]:
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        yield json.dumps(dict(zip(columns, row, strict=True))).encode()


def parts(columns: Columns, size: int) -> Iterator[Columns]:
    for start in range(0, next(iter(columns.values())).size, size):
        yield {name: column[start : start + size] for name, column in columns.items()}


def as_json(columns: Columns) -> Iterator[bytes]:
    for part in parts(columns, 100):
        yield json.dumps({name: column.tolist() for name, column in part.items()}).encode()


def as_arrow(columns: Columns) -> Iterator[bytes]:
    for part in parts(columns, 10_000):
        table, sink = pa.table(part), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield sink.getvalue().to_pybytes()


def decode_arrow(value: bytes) -> Any:
    return pa.ipc.open_stream(value).read_all()


KINDS: dict[str, tuple[Callable[[Columns], Iterator[bytes]], Callable[[bytes], Any], int]] = {
    "one event, JSON": (single, msgspec.json.decode, 1),
    "100 events, JSON": (as_json, msgspec.json.decode, 16),
    "10,000 events, Arrow": (as_arrow, decode_arrow, 50),
}


def draw(random: np.random.Generator, size: int, partition: int) -> Columns:
    """Events of the keys of a partition."""
    truth = random.random(size) < 0.5
    pred = truth ^ (random.random(size) < 0.1)
    keys = random.integers(0, -(-(KEYS - partition) // PARTITIONS), size) * PARTITIONS + partition
    return {"model": keys, "y_true": truth * 1, "y_pred": pred * 1}


def fill(broker: Kafka, topic: str, messages: list[Iterator[bytes]]) -> int:
    """Write messages, in turn to the partitions; how many."""
    settings = {name: value for name, value in broker.settings.items() if not name.startswith(("session", "heart"))}
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 20, "log_level": 0, **settings})
    count = 0
    for values in zip(*messages, strict=True):
        for partition, value in enumerate(values):
            while True:
                try:
                    producer.produce(topic, value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.2)
        count += len(values)
    assert producer.flush(120) == 0
    return count


def bare(settings: dict[str, Any], topic: str, which: int, members: int, kind: str, count: int, told: Any) -> None:
    """Consume and decode the messages of some partitions; when that began and when it ended."""
    decode = KINDS[kind][1]
    consumer = Consumer({"group.id": "bare", "log_level": 0, **settings})
    mine = range(which, PARTITIONS, members)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in mine])
    seen, began = 0, time.monotonic()
    while seen < count // PARTITIONS * len(mine):
        messages = [one for one in consumer.consume(10_000, WAIT) if one.error() is None]
        for message in messages:
            decode(message.value())
        seen += len(messages)
    told.put((began, time.monotonic()))
    consumer.close()


def watch(url: str, state: str, which: int, events: Any, ready: Any, total: int, told: Any) -> None:
    """Watch a topic with others until all its events are taken, and save."""
    with Monitor(url, arl=ARL, by="model", state=state) as monitor:
        while sum(events) < total:
            monitor.step(WAIT)
            events[which] = monitor.events
            ready[which] = ready[which] or (time.monotonic() if monitor.partitions else 0.0)
        monitor.save()
        told.put(time.monotonic())


def bare_rate(settings: dict[str, Any], topic: str, members: int, kind: str, count: int, size: int) -> float:
    """Events a second of bare loops that share the partitions."""
    told = spawn.Queue()
    processes = [
        spawn.Process(target=bare, args=(settings, topic, i, members, kind, count, told)) for i in range(members)
    ]
    for one in processes:
        one.start()
    found = [told.get(timeout=600) for _ in processes]
    for one in processes:
        one.join()
    return size / (max(end for _, end in found) - min(began for began, _ in found))


def own_rate(broker: Kafka, topic: str, members: int, size: int, folder: Path, turn: int) -> float:
    """Events a second of members of a group, once all of them have partitions."""
    url = f"kafka://{broker.address}/{topic}?group={topic}-{turn}{query(broker.settings)}"
    told, events, ready = spawn.Queue(), spawn.Array("q", members, lock=False), spawn.Array("d", members, lock=False)
    state = str(folder / f"{topic}-{turn}")
    processes = [spawn.Process(target=watch, args=(url, state, i, events, ready, size, told)) for i in range(members)]
    for one in processes:
        one.start()
    while not all(ready):
        time.sleep(0.001)
    before, began = sum(events), time.monotonic()
    ends = [told.get(timeout=600) for _ in processes]
    for one in processes:
        one.join()
    return (sum(events) - before) / (max(ends) - began)


def rates(
    broker: Kafka, topic: str, kind: str, members: int, count: int, size: int, turns: int, folder: Path
) -> dict[str, list[float]]:
    """Events a second of members and of bare loops, a turn each."""
    given = {name: value for name, value in broker.settings.items() if not name.startswith("enable")}
    plain = {"bootstrap.servers": broker.address, **given}
    found: dict[str, list[float]] = {"own": [], "bare": [], "ahead": []}
    for turn in range(turns):
        found["bare"].append(bare_rate(plain, topic, members, kind, count, size))
        found["ahead"].append(bare_rate(plain | FETCHING, topic, members, kind, count, size))
        found["own"].append(own_rate(broker, topic, members, size, folder, turn))
    return found


def tell(row: dict[str, Any]) -> float:
    """Print the shares of a row; that of bare loops as the client library comes."""
    print(f"{row['messages']}, {row['members']} of each: {median(row['own']):,.0f} events/s")
    shares = {}
    for peer, words in PEERS.items():
        shares[peer] = [own / other for own, other in zip(row["own"], row[peer], strict=True)]
        print(
            f"  {median(shares[peer]):.2f} of bare loops {words} (at least {ASKED}), "
            f"{median(row[peer]):,.0f} events/s; turns {[round(one, 2) for one in shares[peer]]}",
            flush=True,
        )
    return median(shares["bare"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=800_000, help="of single messages; more of the others")
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--kinds", type=int, nargs="+", default=[*range(len(KINDS))])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="write the numbers to where the pages read them")
    options = parser.parse_args()
    random, missed, members = np.random.default_rng(0), 0, options.members
    with tempfile.TemporaryDirectory() as folder:
        broker = Kafka(Path(folder) / "broker", PARTITIONS)
        try:
            for number in options.kinds:
                name = [*KINDS][number]
                encode, _, more = KINDS[name]
                each = options.events * more // PARTITIONS // 10_000 * 10_000
                size, topic = each * PARTITIONS, f"t{number}"
                columns = [draw(random, each, partition) for partition in range(PARTITIONS)]
                count = fill(broker, topic, [encode(one) for one in columns])
                row = {"messages": name, "members": members, "events": size}
                row |= rates(broker, topic, name, members, count, size, options.turns, Path(folder))
                missed += tell(row) < ASKED
                if options.keep:
                    add(row)
        finally:
            broker.close()
    return 1 if missed else 0


def add(row: dict[str, Any]) -> None:
    """Keep a row, in the place of an earlier one of the same kind."""
    file = RESULTS / "kafka_speed.json"
    others = [one for one in json.loads(file.read_text()) if "ahead" in one] if file.exists() else []
    rows = [one for one in others if (one["messages"], one["members"]) != (row["messages"], row["members"])]
    keep("kafka_speed", sorted([*rows, row], key=lambda one: (one["members"], [*KINDS].index(one["messages"]))))


if __name__ == "__main__":
    sys.exit(main())
