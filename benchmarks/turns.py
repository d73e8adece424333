"""Times to compare: the best of several turns of each job, taken alternately, so that a busy machine disturbs all."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(*jobs: Callable[[], object], turns: int = 7) -> list[float]:
    """The shortest time of each job, in seconds."""
    times = [float("inf")] * len(jobs)
    for _ in range(turns):
        for i, job in enumerate(jobs):
            start = time.perf_counter()
            job()
            times[i] = min(times[i], time.perf_counter() - start)
    return times
