"""Values that people have in their data and that readers like to disagree about; and what the door of frames says."""

from datetime import date
from decimal import Decimal

from fourrates import io

LABELS = [
    *(0, 1, 2, -1, 2**53 + 1, 10**30, True, False, 1.0, -0.0, 0.5, 1e300),
    *("0", "1", " 1 ", "1.0", "1.00", "+1", "1e0", "true", " FALSE ", "yes", "2", "0x1", "1_0", "\u0661", "", " "),
    *("NA", "nan", "null", "é", "1,0", None, Decimal("1.0"), Decimal("0.5"), date(2026, 9, 1), [1], "x" * 300),
]
TIMES = [
    *("2026-09-01", "2026-09-01T12:00:00", "2026-09-01 12:00:00.5", "2026-09-01T12:00:00Z", "2026-09-01T12:00+02:00"),
    *(0, 1_788_264_000, 1_788_264_000.25, 1_788_264_000_000, 1_788_264_000_000_000, 10**18, 10**30, -1, "1788264000"),
    *("01.09.2026", "13/09/2026", "09/13/2026", "01/02/2026", "2026-13-01", "soon", "", None, True, date(2026, 9, 1)),
    *("0000-01-01", "12:00", "0x10", "2026-09-01 12", "2026-09-01T12:00:00.123456789", " 2026-09-01 ", "1e9", "inf"),
    *(1_788_264_000_123_456_789, 1_788_264_000.1, "2026-09-01T24:00", [1], {"a": 1}),
]
KEYS = ["a", "", "NA", None, 7, 7.5, 7.0, True, "Åse", "7", [1], {"a": 1}, "x" * 300, 10**18, date(2026, 9, 1)]
KEYS += ["007", "true", False, -0.0, 1e300, -(2**63), 10**30, "a,b", 'a"b', " a ", "e\u0301", Decimal("7.50"), 0.1]
SCORES = [
    *(0, 1, 0.5, 0.4999, 1e300, -1, True, 10**30, float("inf"), Decimal("0.6"), None, [1], {"a": 1}),
    *("0.7", " 0.7 ", "1e-3", "0,7", "NA", "", "x", "0x1", "1_0", "inf", "nan", "-0.0", "+.5", "5.", "true"),
]

NAMES = {"truth": "y_true", "pred": "y_pred"}
CASES = [("y_true", value) for value in LABELS] + [("y_pred", value) for value in LABELS]
CASES += [("at", value) for value in TIMES] + [("k", value) for value in KEYS]
VERSIONS = [("v", value) for value in KEYS]


def names_of(column):
    return NAMES | {"at": {"time": "at"}, "k": {"by": "k"}, "v": {"version": "v"}}.get(column, {})


def meaning(batch, names):
    """What the only event of a batch means: its codes, its time, and its key or version."""
    key = None if batch.keys is None else names[batch.keys[0]]
    key = key if batch.versions is None else batch.version_names[batch.versions[0]]
    return int(batch.truths[0]), int(batch.preds[0]), None if batch.times is None else str(batch.times[0]), key


def from_frame(row, names):
    """What it means, or why it was not read, by the door of frames."""
    events = io.read({name: [value] for name, value in row.items()}, columns=io.Columns(**names))
    try:
        batches = [*events]
    except io.InputError as error:
        said = str(error).removeprefix("frame, row 1: ").removeprefix("frame, ")
        return said.partition("; if these are the labels")[0]
    if not batches:
        return "unlabelled"
    (batch,) = batches
    return meaning(batch, events.keys)
