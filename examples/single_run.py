"""The paper's single run: Balance1, 10,000 events, the concept changes at 5,000.

The accuracy of the classifier drops from 0.8 to 0.7 because its true negative rate falls from 0.8 to 0.6.
"""

import time

import fourrates as fr
from fourrates.streams import SCENARIOS


def main() -> None:
    """Run it and print what was found."""
    y_true, y_pred = SCENARIOS["Balance1"].stream(seed=9)
    detector = fr.LFR(decay=0.9, warn=0.01, detect=1e-5)

    start = time.perf_counter()
    drifts = detector.update_many(y_true, y_pred)
    milliseconds = 1e3 * (time.perf_counter() - start)

    print(f"Balance1: {y_true.size:,} events in {milliseconds:.1f} ms, the true change at 5,000\n")
    for drift in drifts:
        print(f"drift found at {drift.at:,}, {drift.at - 5000:+,} events from the change")
        for change in drift.changes:
            print(f"  rate       {change.rate}")
            print(f"  direction  {change.direction}")
            print(f"  statistic  {change.statistic:.3f}, bound {change.bound:.3f}, expected {change.expected:.3f}")
        print(
            f"  window     events {drift.window.start:,} to {drift.window.stop - 1:,}: learn the next model from these"
        )
    if not drifts:
        print("no drift found")
    print("\nthe rates since:")
    for name, rate in detector.rates.items():
        bounds = f"{rate.detect.lower:.3f} .. {rate.detect.upper:.3f}"
        print(f"  {name}  {rate.estimate:.3f} over {rate.n:,} events; statistic {rate.statistic:.3f} within {bounds}")


if __name__ == "__main__":
    main()
