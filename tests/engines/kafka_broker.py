"""A mock cluster for the tests. Where it cannot be, tests are skipped, or fail if FOURRATES_ENGINES is set."""

import importlib.util
import json
import os
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../benchmarks"))
REASON = "confluent-kafka is not installed: pip install fourrates[kafka]"
HERE = importlib.util.find_spec("confluent_kafka") is not None
# The mock lets a group wait for a member as long as its session lasts, and never ends a session before 3 s.
SETTINGS = "session.timeout.ms=4000&heartbeat.interval.ms=300"


def started():
    """Start it, or skip the test."""
    if not HERE:
        if os.environ.get("FOURRATES_ENGINES"):
            pytest.fail(REASON)
        pytest.skip(REASON)
    from brokers import Mock

    return Mock()


def produce(broker, topic, values, partition=0, keys=None):
    """Write messages; dicts as JSON."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for i, value in enumerate(values):
        content = json.dumps(value) if isinstance(value, dict) else value
        producer.produce(topic, content, None if keys is None else keys[i], partition=partition)
    assert producer.flush(120) == 0


def consumed(broker, topic, count, seconds=120):
    """The first messages of a topic, from all its partitions."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "test", "log_level": 0})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(4)])
    found, end = [], time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        found += [one for one in consumer.consume(1000, 0.2) if one.error() is None]
    consumer.close()
    return found


def step_until(monitor, done, seconds=180):
    """Let a monitor work until something is so."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        monitor.step(0.1)
    assert done(), f"not in {seconds} s: {monitor.events} events, partitions {sorted(monitor.partitions)}"
