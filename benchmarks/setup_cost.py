"""What it costs to begin: the import, the first detector with no cache and with one, and the size of its tables.

Each time is that of a fresh process, the best of several. Ends with status 1 if a mark is missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

TURNS = 5
FIRST = """
import time, fourrates
start = time.perf_counter()
detector = fourrates.LFR(decay={decay})
print(time.perf_counter() - start)
"""
IMPORT = "import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"


def seconds(code: str, cache: str, turns: int = TURNS) -> float:
    environment = {**os.environ, "FOURRATES_CACHE": cache}
    run = [sys.executable, "-c", code]
    return min(float(subprocess.check_output(run, env=environment, text=True)) for _ in range(turns))


def main() -> int:
    missed = 0

    def report(name: str, value: float, mark: float, unit: str) -> None:
        nonlocal missed
        good = value <= mark
        missed += not good
        print(f"{name:<44} {value:10.4g} {unit:<6} at most {mark:g}: {'yes' if good else 'NO'}")

    with tempfile.TemporaryDirectory() as none:
        numpy, ours = (seconds(IMPORT.format(module=module), none, 9) for module in ("numpy", "fourrates"))
        report("import fourrates / import numpy", ours / numpy, 1.5, "times")
    for decay, mark in ((0.9, 0.5), (0.98, 4.0), (0.995, 15.0)):
        turns = 1 if decay > 0.99 else 3
        times = []
        for _ in range(turns):
            with tempfile.TemporaryDirectory() as cache:
                times.append(seconds(FIRST.format(decay=decay), cache, 1))
                cached = seconds(FIRST.format(decay=decay), cache)
        report(f"first LFR(decay={decay}) with no cache", min(times), mark, "s")
        if decay == 0.9:
            report(f"first LFR(decay={decay}) with a cache", 1e3 * cached, 5.0, "ms")
        else:
            print(f"first LFR(decay={decay}) with a cache{'':<14} {1e3 * cached:10.4g} ms")

    from fourrates import null

    for decay in (0.9, 0.98, 0.995):
        bounds = null.table(decay, (0.01, 1e-5))
        report(f"table of decay {decay}", (bounds.near.nbytes + bounds.far.nbytes + bounds.few.nbytes) / 1e6, 32, "MB")
    print("every mark reached" if not missed else f"{missed} marks missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
