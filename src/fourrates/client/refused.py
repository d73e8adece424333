"""The folder of batches that the server will not accept, one file each, for a person to look at."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

from fourrates.client.batch import Batch

NAME = re.compile(r"[0-9]{20}-([0-9]{1,18})-[!-.0-~]{1,200}\.batch")


def keep(folder: Path, batch: Batch, problem: str, limit: int) -> tuple[Path, list[tuple[Path, int]]]:
    """Write a batch into the folder; its file, and the files deleted for it with their rows.

    A file is a line of JSON that says where the batch was sent and what the answer was, then its body. `limit` is the
    number of bytes that may lie there; beyond that the oldest go.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{time.time_ns():020d}-{batch.rows}-{batch.key}.batch"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        head = json.dumps({"path": batch.path, "key": batch.key, "rows": batch.rows, "problem": problem})
        file.write(head.encode() + b"\n" + batch.body)
        file.flush()
        os.fsync(file.fileno())
    deleted, size = [], 0
    for other in sorted((one for one in folder.iterdir() if NAME.fullmatch(one.name)), reverse=True):
        try:
            size += other.stat().st_size
            if size > limit:
                other.unlink()
                deleted.append((other, int(other.name.split("-")[1])))
        except FileNotFoundError:  # another process that shares the folder has deleted it
            continue
    return path, deleted
