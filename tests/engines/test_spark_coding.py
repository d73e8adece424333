"""Labels of every type that Spark has, and rows that are no events, without Spark around them."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from spark_session import missing

import fourrates as fr

if reason := missing():
    pytest.skip(reason, allow_module_level=True)

import pyarrow as pa

from fourrates.engines.spark.coding import EVENTS, LETTERS, Coder, packer, unpack
from fourrates.engines.spark.events import PRED, SHARD, TRUTH, Task
from fourrates.engines.spark.shard import CODE, TIME


def task(labels=(0, 1), bad="keep", by=("key",), order=("seq",)):
    return Task(fr.FourRates(1e5, labels=labels), "y", "p", by, order, bad)


def rows(truths, preds, key=None, seq=None):
    size = len(truths)
    columns = {
        "key": pa.array(range(size)) if key is None else key,
        "seq": pa.array(range(size)) if seq is None else seq,
    }
    return pa.table(columns | {TRUTH: truths, PRED: preds})


def coded(given, asked):
    """The codes of rows, what is wrong with those that are rejected, by row, and how many are unlabelled."""
    codes, letters = Coder(asked).read(given)
    found = [(row, json.loads(one)) for row, one in letters]
    rejected = {row: {**one, "row": json.loads(one["row"])} for row, one in found if one["kind"] == "rejected"}
    return codes, rejected, sum(one["rows"] for _, one in found if one["kind"] == "unlabelled")


COLUMNS = [
    (pa.array([0, 1, 1, 5, -1, None], pa.int8()), (0, 1), [0, 1, 1, -1, -1, -1]),
    (pa.array([0, 1, 127, 5, -1, None], pa.int8()), (0, 127, 300), [0, -1, 1, -1, -1, -1]),
    (pa.array([2**62 + 1, 1, 3, 5, -1, None]), (2**62, 2**62 + 1), [1, -1, -1, -1, -1, -1]),
    (pa.array([0, 1, 3, 5, -1, None]), (0.5, 1.0, -1), [-1, 1, -1, -1, 2, -1]),
    (pa.array([True, False, True, None, False, True]), (0, 1), [1, 0, 1, -1, 0, 1]),
    (pa.array([True, False, True, None, False, True]), (False, True), [1, 0, 1, -1, 0, 1]),
    (pa.array([0.0, -0.0, 1.0, 0.5, float("nan"), None]), (0, 1), [0, 0, 1, -1, -1, -1]),
    (pa.array([0.5, 0.1, 1.0, 0.25, float("inf"), None], pa.float32()), (0.1, 0.5), [1, -1, -1, -1, -1, -1]),
    (pa.array([*map(Decimal, ("1.00", "0.10", "0.00", "0.50", "2.00")), None]), (0, 1, 0.1), [1, 2, 0, -1, -1, -1]),
    (
        pa.array([*map(Decimal, ("0.3", "0.6", "0.7", "0.5", "1.1")), None]),
        (0.3, 0.6, 0.7, 0.25),
        [0, 1, 2, -1, -1, -1],
    ),
    (pa.array([0.0, -0.0, 1.0, 0.5, float("nan"), None]), (-0.0, 1.0), [0, 0, 1, -1, -1, -1]),
    (pa.array(["ham", "spam", "Ham", "", "é", None]), ("é", "ham", "spam"), [1, 2, -1, -1, 0, -1]),
    (pa.array(["ham", "spam", "Ham", "", "é", None], pa.large_string()), ("ham", ""), [0, -1, -1, 1, -1, -1]),
]


@pytest.mark.parametrize(("column", "labels", "wanted"), COLUMNS)
def test_a_label_is_whatever_is_equal_to_one_or_spelled_like_one(column, labels, wanted):
    classes = len(labels)
    known = pa.array([labels[0]] * 6)
    for truths, preds, scale in ((column, known, classes), (known, column, 1)):
        codes, rejected, unlabelled = coded(rows(truths, preds), task(labels))
        assert codes.tolist() == [one if one < 0 else scale * one for one in wanted]
        assert len(rejected) + unlabelled == wanted.count(-1)
    assert wanted == [max(-1, fr.labels.Labels(labels).read(one)) for one in column.to_pylist()]


def test_large_decimals_are_told_apart():
    large = pa.array([Decimal(2**53), Decimal(2**53 + 1), Decimal(2**53 + 2)], pa.decimal128(20, 0))
    codes, _, _ = coded(rows(large, pa.array([2**53] * 3)), task((2**53, 2**53 + 1)))
    assert codes.tolist() == [0, 2, -1]


@pytest.mark.parametrize("zone", ["UTC", "GMT+01:00", "UTC+1"])
def test_a_moment_that_arrow_or_python_cannot_write_ends_nothing(zone):
    moments = pa.array([0, 10**15, 400 * 10**15], pa.timestamp("us", zone))
    labels = pa.array([1, 7, 7])
    first = coded(rows(labels[:2], labels[:2], seq=moments[:2]), task())[1]
    assert first[1]["row"]["seq"] == "2001-09-09T01:46:40+00:00"
    far = coded(rows(labels, labels, seq=moments), task())[1]
    assert [one["row"]["seq"] for one in far.values()] == ["2001-09-09T01:46:40+00:00", "14645-06-30T15:06:40.000000"]


def test_what_is_wrong_with_a_row_is_said_with_the_row():
    times = pa.array([datetime(2026, 11, 17, 8, tzinfo=UTC), None, *[datetime(2026, 11, 17, 9, tzinfo=UTC)] * 4])
    keys = pa.array([None, 1, 2, 3, 4.5, 6])
    given = rows(pa.array([1, 1, None, 4, 1, 0]), pa.array([0, 0, 0, 7, 9, None]), keys, times)
    codes, rejected, unlabelled = coded(given, task())
    assert codes.tolist() == [-1] * 6
    assert unlabelled == 1
    assert {row: one["reason"] for row, one in rejected.items()} == {
        0: "the value in column 'key' is missing",
        1: "the value in column 'seq' is missing",
        3: "4 in column 'y' is not one of the labels 0, 1",
        4: "9 in column 'p' is not one of the labels 0, 1",
        5: "the value in column 'p' is missing",
    }
    assert rejected[0]["row"] == {"key": None, "seq": "2026-11-17T08:00:00+00:00", "y": 1, "p": 0}
    assert coded(given, task(bad="skip"))[1:] == ({}, 1)
    with pytest.raises(ValueError, match=r"^the value in column 'key' is missing: \{\"key\": null, "):
        coded(given, task(bad="reject"))
    assert coded(given[2:3], task(bad="reject"))[1:] == ({}, 1)


@pytest.mark.parametrize("column", [[0.5, float("nan")], ["a", ""], ["a", "NA"], ["a", None]])
def test_a_key_that_is_none_is_missing(column):
    codes, rejected, _ = coded(rows(pa.array([1, 1]), pa.array([1, 1]), pa.array(column)), task())
    assert codes.tolist() == [3, -1]
    assert rejected[1]["reason"] == "the value in column 'key' is missing"


def test_packed_by_shard_and_unpacked_nothing_is_lost_and_the_order_is_kept():
    random = np.random.default_rng(1)
    size, asked = 5_000, task(("a", "b", "c"))
    key, shard = random.integers(0, 300, size), random.integers(0, 7, size)
    shard[shard == 3] = 4
    truths, preds = (random.choice([*"abcx"], size, p=[0.4, 0.3, 0.25, 0.05]) for _ in range(2))
    given = rows(pa.array(truths), pa.array(preds), pa.array(key)).append_column(SHARD, pa.array(shard, pa.int32()))
    columns = pa.schema([("key0", pa.int64()), (TIME, pa.int64()), (CODE, pa.uint8())])
    (found,) = packer(asked, columns)(iter(given.to_batches(max_chunksize=999)))
    assert found[SHARD].to_pylist() == [0, 1, 2, 4, 5, 6]
    codes, letters = Coder(asked).read(given)
    for one in found.to_pylist():
        own = unpack([one[EVENTS]], columns)
        wanted = np.flatnonzero((shard == one[SHARD]) & (codes >= 0))
        assert own[TIME].to_pylist() == wanted.tolist()
        assert own["key0"].to_pylist() == key[wanted].tolist()
        assert own[CODE].to_pylist() == codes[wanted].tolist()
        assert one[LETTERS] == [letter for row, letter in letters if shard[row] == one[SHARD]]
    assert len(letters) > 300
    assert [*packer(asked, columns)(iter([]))] == []
