"""Predictions and labels from two places, brought together by id."""

from datetime import timedelta

import numpy as np
import pytest

from fourrates.io import Columns, InputError, joined


def pairs_of(events):
    return [pair for batch in events for pair in zip(batch.truths.tolist(), batch.preds.tolist(), strict=True)]


def some(counts):
    return {name: count for name, count in counts.items() if count}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "predictions.csv").write_bytes(
        b"\xef\xbb\xbftransaction,when,country,said\r\n"
        b"007,2026-01-01T00:00,fr,fraud\r\n008,2026-01-02T00:00,no,fine\r\n009,2026-01-03T00:00,fr,fraud\r\n"
    )
    (tmp_path / "chargebacks.csv").write_text(
        "transaction;arrived;label\n009;2026-01-04;fine\n7;2026-01-05;fraud\n007;2026-02-20;fraud\n008;2026-02-01;fine\n"
    )
    return tmp_path / "predictions.csv", tmp_path / "chargebacks.csv"


def of_files(files, **more):
    columns = Columns(id="transaction", pred="said", time="when", by="country")
    return joined(*files, columns=columns, labels=["fine", "fraud"], **more)


def test_files_with_times_are_replayed_in_the_order_of_their_times(files):
    said = []
    events = of_files(files, label_columns=Columns(time="arrived"), on_message=said.append, order="arrival")
    batches = list(events)
    assert pairs_of(batches) == [(0, 1), (1, 1), (0, 0)]
    assert [batch.rows.tolist() for batch in batches] == [[3, 1, 2]]
    assert [events.keys[key] for batch in batches for key in batch.keys.tolist()] == ["fr", "fr", "no"]
    # The last label is dated before the one above it: it counts where it stands.
    days = [str(time)[:10] for batch in batches for time in batch.times]
    assert days == ["2026-01-04", "2026-02-20", "2026-02-20"]
    assert some(events.counts) == {"pairs": 3, "waiting_labels": 1}
    assert events.rows == 7
    assert said == [f"{files[1]}: labels in column 'label'"]


def test_a_longest_wait_lets_predictions_expire(files):
    events = of_files(files, label_columns=Columns(time="arrived"), max_wait=timedelta(days=30))
    assert pairs_of(events) == [(0, 1)]
    assert some(events.counts) == {"pairs": 1, "expired": 2, "unmatched": 1, "late_labels": 2}


def test_a_longest_wait_without_times_is_refused(files):
    predictions, labels = {"id": [1], "pred": [1]}, {"id": [1], "label": [1]}
    with pytest.raises(InputError, match="needs a column of times both"):
        list(joined(predictions, labels, max_wait=timedelta(days=1)))


def test_without_times_of_the_labels_events_come_in_the_order_of_the_predictions():
    random = np.random.default_rng(1)
    ids, preds, truths = random.permutation(1_000), random.integers(0, 2, 1_000), random.integers(0, 2, 1_000)
    order = random.permutation(1_000)[:900]
    events = joined({"id": ids, "pred": preds}, {"id": ids[order].astype(str), "label": truths[order]})
    kept = np.sort(order)
    batches = list(events)
    assert pairs_of(batches) == list(zip(truths[kept].tolist(), preds[kept].tolist(), strict=True))
    assert np.concatenate([batch.rows for batch in batches]).tolist() == (kept + 1).tolist()
    assert some(events.counts) == {"pairs": 900, "waiting": 100}


def test_with_times_of_the_labels_alone_events_come_in_their_order():
    when = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    events = joined({"id": [1, 2], "pred": [0, 1]}, {"id": [2, 1], "label": [1, 1], "time": when}, order="arrival")
    (batch,) = events
    assert batch.rows.tolist() == [2, 1]
    assert (batch.times == when).all()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_batches_and_formats_do_not_change_what_comes_out(tmp_path, suffix, monkeypatch):
    """Times with many ties, read in one piece and in many: the same pairs in the same order."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    from fourrates.io import formats

    random = np.random.default_rng(4)
    size = 3_000
    start = np.datetime64("2026-01-01T00:00:00", "us")

    def table(column, n):
        days = np.sort(random.integers(0, 40, n)).astype("m8[D]")
        return pa.table({"id": random.integers(0, size, n), column: random.integers(0, 2, n), "time": start + days})

    whole = table("pred", size), table("label", size)
    expected = joined(*whole, max_waiting=500, max_wait=timedelta(days=5))
    pairs = pairs_of(expected)
    assert len(pairs) > 300
    paths = tmp_path / f"predictions.{suffix}", tmp_path / f"labels.{suffix}"
    for data, path in zip(whole, paths, strict=True):
        if suffix == "parquet":
            pq.write_table(data, path)
        elif suffix == "csv":
            from pyarrow import csv

            csv.write_csv(data, path)
        else:
            rows = data.to_pandas()
            rows["time"] = rows["time"].astype(str)
            rows.to_json(path, orient="records", lines=True)
    monkeypatch.setattr(formats, "ROWS", 97)
    monkeypatch.setattr(formats, "BLOCK", 4_001)
    found = joined(*paths, max_waiting=500, max_wait=timedelta(days=5))
    assert pairs_of(found.ahead()) == pairs
    assert found.counts == expected.counts
    assert sum(found.counts[name] > 0 for name in ("expired", "unmatched", "late_labels", "repeated_labels")) == 4


def test_rows_of_several_files_are_named_by_file_and_row(tmp_path):
    for name, rows in (("a", "1,0\n2,1\n"), ("b", "3,1\n4,0\n")):
        (tmp_path / f"{name}.csv").write_text("id,pred\n" + rows)
    labels = {"id": ["4", "1", "2", "3"], "label": [0, 0, 1, 1], "time": np.arange(4).astype("M8[D]")}
    for order, rows in (
        ("arrival", [("b", 2), ("a", 1), ("a", 2), ("b", 1)]),
        ("prediction", [("a", 1), ("a", 2), ("b", 1), ("b", 2)]),
    ):
        batches = joined([tmp_path / "a.csv", tmp_path / "b.csv"], labels, order=order)
        assert [(batch.source[-5], row) for batch in batches for row in batch.rows.tolist()] == rows


def test_rows_with_something_missing_are_skipped_and_counted_or_refused():
    predictions = {"id": [1, None, 3], "score": [0.9, 0.2, None]}
    labels = {"id": ["1", "3"], "label": [1, None]}
    events = joined(predictions, labels, bad="skip")
    assert pairs_of(events) == [(1, 1)]
    assert (events.rows, events.skipped) == (5, 3)
    with pytest.raises(InputError, match="row 2: the value in column 'id' is missing"):
        list(joined(predictions, labels))
    whole = {"id": [1, 3], "score": [0.9, 0.2]}
    assert pairs_of(joined(whole, labels)) == [(1, 1)]  # a label that is missing rejects nothing


@pytest.mark.parametrize(
    ("predictions", "labels", "message"),
    [
        ({"x": [1], "pred": [1]}, {"id": [1], "label": [1]}, "which column holds the ids"),
        ({"id": [1], "x": [1]}, {"id": [1], "label": [1]}, "which column holds the predictions"),
        ({"id": [1], "pred": [1]}, {"id": [1], "x": [1]}, "which column holds the true labels"),
        ({"id": [1], "pred": [1]}, {"x": [1], "label": [1]}, "no column 'id'"),
        ({"id": [1], "pred": [7]}, {"id": [1], "label": [1]}, "7 in column 'pred' is not one of the labels"),
    ],
)
def test_columns_that_cannot_be_told_are_asked_for(predictions, labels, message):
    with pytest.raises(InputError, match=message):
        list(joined(predictions, labels))
