"""The paper's numbers, typed a second time from its tables, row by row."""

import pytest

from paper import numbers, settings

HITS = """
Balance1 38 12 4 12
Balance2 16 3 0 11
Balance3 25 4 0 3
Imbalance1 95 59 0 4
Imbalance2 91 21 0 43
Imbalance3 95 38 36 39
SEA 142 29 17 26
HYPERPLANE 671 598 345 149
USENET1 207 47 108 66
USENET2 3 17 3 21
"""
FALSE = """
Balance1 6 77 36 304
Balance2 13 19 33 339
Balance3 18 54 11 219
Imbalance1 18 81 16 259
Imbalance2 10 91 23 165
Imbalance3 9 86 55 204
SEA 72 32 54 658
HYPERPLANE 84 56 73 826
USENET1 12 50 43 322
USENET2 43 80 65 272
"""


@pytest.mark.parametrize(("table", "typed"), [(numbers.TABLE2, HITS), (numbers.TABLE3, FALSE)])
def test_the_counts_are_those_the_paper_prints(table, typed):
    rows = [line.split() for line in typed.split("\n") if line]
    assert {name: tuple(own.values()) for name, own in table.items()} == {
        name: tuple(map(int, counts)) for name, *counts in rows
    }


def test_the_data_sets_are_described_as_the_paper_describes_them():
    assert {
        name: (row.length, len(row.changes), row.changes[0], row.dimensions) for name, row in numbers.TABLE1.items()
    } == {
        "SEA": (60_000, 3, 15_000, 3),
        "HYPERPLANE": (90_000, 8, 10_000, 10),
        "USENET1": (1_500, 5, 300, 100),
        "USENET2": (1_500, 5, 300, 100),
    }


def _set(detectors):
    return {name: (made.parameters["detect"], made.parameters["warn"]) for name, made in detectors.items()}


def test_the_detectors_are_set_as_the_paper_sets_them():
    assert _set(settings.synthetic()) == {
        "LFR": (1e-5, 0.01),
        "LFR plug-in": (1e-5, 0.01),
        "NFR": (0.001, 0.025),
        "DDM": (3, 2),
        "DDM-OCI": (20, 10),
    }
    for name, deviations in {"SEA": (20, 10), "HYPERPLANE": (30, 10), "USENET1": (3, 2), "USENET2": (3, 2)}.items():
        assert _set(settings.public(name)) == {
            "LFR": (1e-4, 0.01),
            "LFR 1e-5": (1e-5, 0.01),
            "LFR plug-in": (1e-4, 0.01),
            "NFR": (0.001, 0.025),
            "DDM": (3, 2),
            "DDM-OCI": deviations,
        }


def test_only_the_plug_in_differs_in_its_null():
    nulls = {name: made.parameters.get("null") for name, made in settings.synthetic().items()}
    assert nulls == {"LFR": "exact", "LFR plug-in": "plugin", "NFR": None, "DDM": None, "DDM-OCI": None}
