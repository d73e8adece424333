"""How much of a small change can be found where the old rate is known from few observations only.

A likelihood ratio of two samples, before and since, at every observation and over windows of all lengths, both rates
unknown. It is told which class to watch and that its recall falls, and it spends the whole budget on that: one false
alarm in 100,000 events, by simulation. It is no detector to use, but what one that knows less can hardly beat: tnr
0.9 -> 0.87 after 5,000 events, found within the next 20,000. With a threshold for four such questions, two classes and
two directions, it is what one can hope for.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from any_size import ARL
from drawn import keep

BEFORE, AFTER = 0.9, 0.87
HISTORY, WITHIN = 2_500, 10_000  # observations of the class: half of the events
PIECE = 25  # observations from look to look
LENGTHS = np.unique(np.geomspace(1, WITHIN / PIECE, 60).astype(int))  # of the windows since, in pieces


def log_likelihood(right: np.ndarray, observed: np.ndarray | int) -> np.ndarray:
    """The largest that any rate gives."""
    rate = np.clip(right / np.maximum(observed, 1), 1e-9, 1 - 1e-9)
    return right * np.log(rate) + (observed - right) * np.log(1 - rate)


def statistic(bits: np.ndarray) -> np.ndarray:
    """By stream and look: nats by which a fall at some moment explains the bits better than one rate does."""
    streams, observed = bits.shape
    right = np.zeros((streams, observed // PIECE + 1))
    right[:, 1:] = bits.reshape(streams, -1, PIECE).sum(2).cumsum(1)
    n = np.arange(right.shape[1]) * PIECE
    whole, found = log_likelihood(right, n), np.zeros(right.shape)
    for length in LENGTHS[n.size - 1 > LENGTHS]:
        since, before = right[:, length:] - right[:, :-length], right[:, :-length]
        gain = log_likelihood(since, length * PIECE) + log_likelihood(before, n[:-length]) - whole[:, length:]
        fell = since * n[:-length] < before * length * PIECE
        found[:, length:] = np.maximum(found[:, length:], np.where(fell, gain, 0.0))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    begun, random = time.time(), np.random.default_rng(options.seed)

    def largest(sizes_and_rates: list[tuple[int, float]], first: int) -> tuple[np.ndarray, np.ndarray]:
        """Of each stream the largest statistic up to observation `first`, and after it."""
        up_to, after = [], []
        for _ in range(options.streams // 100):
            bits = np.hstack([random.random((100, size)) < rate for size, rate in sizes_and_rates])
            found = statistic(bits)
            up_to.append(found[:, : first // PIECE + 1].max(1))
            after.append(found[:, first // PIECE + 1 :].max(1))
        return np.concatenate(up_to), np.concatenate(after)

    # In as many events as the budget has, a run without an alarm has probability 1 / e, and 1 / e ** 4 if four ask.
    stable = largest([(ARL // 2, BEFORE)], ARL // 2 - PIECE)[0]
    up_to, after = largest([(HISTORY, BEFORE), (WITHIN, AFTER)], HISTORY)
    numbers: dict[str, float] = {"streams": options.streams}
    for name, asked in (("one", 1), ("four", 4)):
        threshold = float(np.quantile(stable, np.exp(-1 / asked)))
        kept = up_to < threshold
        numbers[name] = float((after[kept] >= threshold).mean())
        error = np.sqrt(numbers[name] * (1 - numbers[name]) / kept.sum())
        print(f"{asked} asked, threshold {threshold:.2f} nats: found {numbers[name]:.1%} (standard error {error:.1%})")
    keep("short_history", numbers)
    print(f"{time.time() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
