"""Findings without what a watch adds to them, to be compared with those of a detector by itself."""

from dataclasses import replace


def bare(finding):
    """A finding as a detector by itself gives it."""
    place = dict.fromkeys(("segment", "time", "started_time", "source", "row", "started_row"))
    return replace(finding, about=None if finding.about is None else bare(finding.about), **place)


def without_rows(findings):
    """Findings without their rows, which are counted from one again in each piece that is read."""
    return [
        replace(one, row=None, started_row=None, about=None if one.about is None else bare(one.about))
        for one in findings
    ]
