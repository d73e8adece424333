"""Reads the hand-worked tables of the detectors' tests."""

from fractions import Fraction


def rows(table):
    """One dict a line, by the names in the first: numbers and fractions as numbers, words as words, "-" as None."""
    names, *lines = (line.split() for line in table.strip().splitlines())
    return [dict(zip(names, map(_cell, line), strict=True)) for line in lines]


def _cell(text):
    if text == "-":
        return None
    try:
        return Fraction(text)
    except ValueError:
        return text


def level(detector):
    """What the flags say."""
    if detector.drift_detected:
        return "drift"
    return "warning" if detector.warning_detected else "quiet"


def alarms_around_the_change(make, scenario, streams):
    """In how many streams a fresh detector alarms in the 200 events before the change, and in the 200 from it on.

    Where the detector cannot see the change, both counts are binomial with one probability, and their difference has a
    deviation of at most the root of their expected sum.
    """
    before = after = 0
    for seed in range(streams):
        drifts = make().update_many(*scenario.stream(seed=seed))
        before += any(4800 <= drift.at < 5000 for drift in drifts)
        after += any(5000 <= drift.at < 5200 for drift in drifts)
    return before, after
