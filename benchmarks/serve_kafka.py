"""kill -9 at random moments: the monitor service that takes its events from a topic, and the broker.

A producer writes events of some segments to three partitions of a real broker; ``fourrates serve --from kafka://...``
takes them. Meanwhile the server is killed and started again, every third time right after it has committed and before
anybody is told, and so is the broker. At the end the topic is read by a plain consumer. Asked for: the monitor has
counted every event in the topic exactly once, in all and in each cell of the confusion matrix, the positions in its
database are the ends of the partitions, and drifts were found.

    python benchmarks/serve_kafka.py [--kills 20] [--broker-kills 5] [--seed 0] [--keep]
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from brokers import Kafka, query
from drawn import keep
from kafka_kill import PARTITIONS, TOPIC, Writer, log
from servers import Client, Server

SEGMENTS, GROUP = 60, "service"
PATIENCE = 900.0  # seconds for what is written to be taken


def standing(server: Server) -> dict[str, Any]:
    """What the monitor says of itself."""
    with Client(server.port, timeout=120) as client:
        status, found = client.call("GET", "/api/monitors/models")
    assert status == 200, found
    return dict(found)


def taken(server: Server, least: int) -> dict[str, Any]:
    """Wait until it has taken this number of events."""
    until = time.monotonic() + PATIENCE
    while (found := standing(server))["events"] < least and time.monotonic() < until:
        time.sleep(0.2)
    return found


def run(broker: Kafka, folder: Path, kills: int, broker_kills: int, seed: int, rate: float) -> dict[str, Any]:
    """Let it happen, and say what was wrong."""
    draw, wrong, done = random.Random(seed), [], {"kill": 0, "committed": 0, "broker": 0}
    url = f"kafka://{broker.address}/{TOPIC}?monitor=models&group={GROUP}{query(broker.settings)}"
    server = Server(folder / "data", "--from", url, snapshot_bytes=100_000).start()
    with Client(server.port) as client:
        config = {"arl": 100_000, "by": ["model"], "positive": 1}
        assert client.call("PUT", "/api/monitors/models", config)[0] in (200, 201)
    writer = Writer(broker, SEGMENTS, SEGMENTS, rate, seed, 100_000_000)
    writer.start()
    acts = ["kill", "kill", "committed"] * (kills // 3) + ["kill"] * (kills % 3) + ["broker"] * broker_kills
    draw.shuffle(acts)
    before = moved = 0
    for number, act in enumerate(acts):
        taken(server, before + 1)
        time.sleep(draw.uniform(0.0, 2.0))
        if act == "broker":
            broker.kill()
            time.sleep(draw.random())
            broker.start()
        else:
            server.kill()
            if act == "committed":
                server.start(wait=False, FOURRATES_FAILPOINT="committed:2")
                if server.process.wait(PATIENCE) != -9:  # type: ignore[union-attr]
                    wrong.append("the server did not die where it should")
            server.start()
        done[act] += 1
        moved += (now := standing(server)["events"]) > before
        before = now
        print(f"{number + 1} of {len(acts)}: {act}, {now:,} of {writer.written:,} events taken", flush=True)
    writer.ended.set()
    writer.join(PATIENCE)
    messages = {partition: log(broker, TOPIC, partition) for partition in range(PARTITIONS)}
    size = sum(map(len, messages.values()))
    taken(server, size)
    time.sleep(3)  # what is taken twice would come now
    found = standing(server)
    server.stop()
    counts = [[0, 0], [0, 0]]
    for message in (one for several in messages.values() for one in several):
        event = json.loads(message.value())
        counts[event["y_true"]][event["y_pred"]] += 1
    if found["events"] != size:
        wrong.append(f"{found['events']} events counted, {size} in the topic")
    if found["confusion"] != counts:
        wrong.append(f"confusion {found['confusion']}, that of the topic {counts}")
    with sqlite3.connect(folder / "data" / "fourrates.db") as saved:
        positions = saved.execute("SELECT part, next FROM sources ORDER BY part").fetchall()
    if positions != (ends := [(part, several[-1].offset() + 1) for part, several in messages.items()]):
        wrong.append(f"positions {positions}, the partitions end at {ends}")
    if not found["drifts"] or moved < len(acts) // 2:
        wrong.append(f"{found['drifts']} drifts, events taken between {moved} of {len(acts)} acts")
    return {**done, "events": size, "drifts": found["drifts"], "wrong": wrong}


def main() -> int:
    """Run it on a real broker; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--broker-kills", type=int, default=5)
    parser.add_argument("--rate", type=float, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write the numbers to where the pages read them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        broker = Kafka(Path(name) / "broker")
        try:
            found = run(broker, Path(name), options.kills, options.broker_kills, options.seed, options.rate)
        finally:
            broker.close()
    print(
        f"{found['kill']} kills of the server, {found['committed']} right after a commit, {found['broker']} of the "
        f"broker; {found['events']:,} events, {found['drifts']:,} drifts; wrong: {len(found['wrong'])}",
        *found["wrong"],
        sep="\n  ",
    )
    if options.keep:
        keep("serve_kafka", found)
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
