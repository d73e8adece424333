"""On Kafka: drifts of a topic, found by a monitor that can be killed at any moment.

    pip install fourrates[kafka]
    python examples/on_kafka.py                  # on the mock cluster of the client library, in this process
    python examples/on_kafka.py broker:9092      # on a broker of yours: topics demo-predictions and demo-drifts

Three shops send predictions with their labels. Halfway the model of Oslo begins to miss positives. The monitor is
closed in between and another one goes on from what it saved.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from fourrates.engines.kafka import Monitor

SIZE, TOPIC, DRIFTS = 12_000, "demo-predictions", "demo-drifts"


def events() -> list[dict[str, Any]]:
    """What the shops send."""
    random = np.random.default_rng(7)
    shop = random.choice(["Lyon", "Oslo", "Rome"], SIZE)
    truth = random.random(SIZE) < 0.3
    missed = (shop == "Oslo") & (np.arange(SIZE) > SIZE // 2) & truth
    pred = truth ^ (random.random(SIZE) < np.where(missed, 0.7, 0.1))
    rows = zip(shop.tolist(), truth.tolist(), pred.tolist(), strict=True)
    return [{"shop": place, "y_true": int(y), "y_pred": int(p)} for place, y, p in rows]


def watch(url: str, state: str, until: int) -> int:
    """Take events until there were so many; how many this monitor took."""
    with Monitor(url, arl=100_000, by="shop", state=state, found=lambda one: print("  " + one["text"])) as monitor:
        monitor.run(until=lambda: monitor.events >= until)
        return monitor.events


def main() -> None:
    """Fill a topic, watch it twice, and read what was produced."""
    mock = None
    if len(sys.argv) > 1:
        servers = sys.argv[1]
    else:
        mock = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 2})
        broker = next(iter(mock.list_topics(timeout=10).brokers.values()))
        servers = f"{broker.host}:{broker.port}"
    producer = Producer({"bootstrap.servers": servers, "log_level": 2})
    url = f"kafka://{servers}/{TOPIC}?drifts={DRIFTS}"
    if mock:
        url += "&session.timeout.ms=4000&heartbeat.interval.ms=300"  # it lets a group wait as long as a session lasts
    with tempfile.TemporaryDirectory() as state:
        sent = events()
        for part in (sent[: SIZE // 2], sent[SIZE // 2 :]):
            for one in part:
                producer.produce(TOPIC, json.dumps(one), one["shop"], partition=0)
                producer.poll(0)
            producer.flush(30)
            print(f"a monitor took {watch(url, state, len(part)):,} events")
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader"})
    consumer.assign([TopicPartition(DRIFTS, partition, 0) for partition in range(4 if mock else 1)])
    message = consumer.poll(20)
    assert message is not None
    assert message.error() is None
    print(f"{DRIFTS}: {json.loads(message.value())['id']}, {message.key().decode()}")
    consumer.close()


if __name__ == "__main__":
    main()
