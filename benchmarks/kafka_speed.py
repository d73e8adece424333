"""How fast a topic is watched, next to a bare consumer loop that only decodes its messages.

A real broker on the loopback, three partitions, 100,000 keys. Three kinds of messages: one event each as JSON, columns
of 100 events as JSON, and columns of 10,000 events as Arrow. The monitor keeps its state in a folder. Each is timed
alternately with its peer, from the first message to the last; the best of several turns counts.

    python benchmarks/kafka_speed.py [--events 300000] [--turns 3] [--keep]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from brokers import Kafka, query
from confluent_kafka import Consumer, Producer, TopicPartition
from drawn import keep

from fourrates.engines.kafka import Monitor

PARTITIONS, KEYS, ARL = 3, 100_000, 1e6
ASKED = 0.5  # of the bare loop


def single(columns: dict[str, np.ndarray]) -> Iterator[bytes]:
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        yield json.dumps(dict(zip(columns, row, strict=True))).encode()


def parts(columns: dict[str, np.ndarray], size: int) -> Iterator[dict[str, np.ndarray]]:
    for start in range(0, next(iter(columns.values())).size, size):
        yield {name: column[start : start + size] for name, column in columns.items()}


def as_json(columns: dict[str, np.ndarray]) -> Iterator[bytes]:
    for part in parts(columns, 100):
        yield json.dumps({name: column.tolist() for name, column in part.items()}).encode()


def as_arrow(columns: dict[str, np.ndarray]) -> Iterator[bytes]:
    for part in parts(columns, 10_000):
        table, sink = pa.table(part), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield sink.getvalue().to_pybytes()


def decode_arrow(value: bytes) -> Any:
    return pa.ipc.open_stream(value).read_all()


KINDS: dict[str, tuple[Callable[..., Iterator[bytes]], Callable[[bytes], Any], int]] = {
    "one event, JSON": (single, json.loads, 1),
    "100 events, JSON": (as_json, json.loads, 4),
    "10,000 events, Arrow": (as_arrow, decode_arrow, 40),
}


def fill(broker: Kafka, topic: str, values: Iterator[bytes]) -> int:
    """Write messages, in turn to the partitions; how many."""
    settings = {name: value for name, value in broker.settings.items() if not name.startswith(("session", "heart"))}
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 20, "log_level": 0, **settings})
    count = 0
    for count, value in enumerate(values, 1):
        while True:
            try:
                producer.produce(topic, value, partition=count % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.2)
    assert producer.flush(120) == 0
    return count


def bare(broker: Kafka, topic: str, count: int, decode: Callable[[bytes], Any]) -> float:
    """Seconds from the first message to the last, each decoded and forgotten."""
    settings = {name: value for name, value in broker.settings.items() if not name.startswith("enable")}
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bare", "log_level": 0, **settings})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    seen, began = 0, 0.0
    while seen < count:
        messages = [one for one in consumer.consume(10_000, 1.0) if one.error() is None]
        began = began or time.perf_counter()
        for message in messages:
            decode(message.value())
        seen += len(messages)
    took = time.perf_counter() - began
    consumer.close()
    return took


def watched(broker: Kafka, topic: str, events: int, folder: Path, turn: int) -> float:
    """Seconds from the first message to the last, all of them taken, and saved at the end."""
    url = f"kafka://{broker.address}/{topic}?group={topic}-{turn}{query(broker.settings)}"
    monitor = Monitor(url, arl=ARL, by="model", state=folder / f"{topic}-{turn}")
    began = 0.0
    while monitor.events < events:
        monitor.step(0.2)
        began = began or (time.perf_counter() if monitor.partitions else 0.0)
    monitor.save()
    took = time.perf_counter() - began
    monitor.close()
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=300_000, help="of single messages; more of the others")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="write the numbers to where the pages read them")
    options = parser.parse_args()
    random, rows, missed = np.random.default_rng(0), [], 0
    with tempfile.TemporaryDirectory() as folder:
        broker = Kafka(Path(folder) / "broker", PARTITIONS)
        try:
            for number, (name, (encode, decode, more)) in enumerate(KINDS.items()):
                size, topic = options.events * more, f"t{number}"
                truth = random.random(size) < 0.5
                guess = truth ^ (random.random(size) < 0.1)
                columns = {"model": random.integers(0, KEYS, size), "y_true": truth * 1, "y_pred": guess * 1}
                count = fill(broker, topic, encode(columns))
                peer, own = float("inf"), float("inf")
                for turn in range(options.turns):
                    peer = min(peer, bare(broker, topic, count, decode))
                    own = min(own, watched(broker, topic, size, Path(folder), turn))
                ratio = peer / own
                missed += ratio < ASKED
                rows.append({"messages": name, "events": size, "bare": size / peer, "own": size / own, "ratio": ratio})
                print(
                    f"{name}: {size / own:,.0f} events/s, a bare loop that decodes {size / peer:,.0f}: "
                    f"{ratio:.2f} of it (at least {ASKED})",
                    flush=True,
                )
        finally:
            broker.close()
    if options.keep:
        keep("kafka_speed", rows)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
