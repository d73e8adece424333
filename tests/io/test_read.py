"""Events come out the same from every source; what is guessed is said; what is wrong is named."""

import bz2
import gzip
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from fourrates import io
from fourrates.events.columns import distinct_values

TRUTH = [0, 1, 1, 0, 1, 0, 0, 1]
PRED = [0, 1, 0, 0, 1, 1, 0, 1]
START = np.datetime64("2026-03-01T00:00:00", "us")
TIMES = START + np.arange(8) * np.timedelta64(90, "m")


def table():
    return pa.table({"id": list("abcdefgh"), "label": TRUTH, "prediction": PRED, "timestamp": pa.array(TIMES)})


def together(events):
    batches = list(events)
    return (
        np.concatenate([batch.truths for batch in batches]).tolist(),
        np.concatenate([batch.preds for batch in batches]).tolist(),
    )


def write_csv(path, delimiter=","):
    options = pyarrow.csv.WriteOptions(delimiter=delimiter)
    pyarrow.csv.write_csv(table(), path, options)


def write_jsonl(path):
    lines = [json.dumps(row, default=str) for row in table().to_pylist()]
    path.write_text("\n".join(lines) + "\n")


def write_stream(path):
    with pa.ipc.new_stream(path, table().schema) as writer:
        writer.write_table(table())


WRITERS = {
    "x.csv": write_csv,
    "x.tsv": lambda path: write_csv(path, "\t"),
    "semicolons.csv": lambda path: write_csv(path, ";"),
    "x.jsonl": write_jsonl,
    "x.parquet": lambda path: pq.write_table(table(), path),
    "x.feather": lambda path: pyarrow.feather.write_feather(table(), path, compression="zstd"),
    "x.arrow": write_stream,
}
PACKERS = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_and_packing_gives_the_same_events(tmp_path, name, packing):
    plain = tmp_path / name
    WRITERS[name](plain)
    path = tmp_path / (name + packing)
    path.write_bytes(PACKERS[packing](plain.read_bytes()))
    said = []
    events = io.read(path, on_message=said.append)
    batches = list(events)
    assert together(batches) == (TRUTH, PRED)
    assert np.concatenate([batch.times for batch in batches]).tolist() == TIMES.tolist()
    assert np.concatenate([batch.rows for batch in batches]).tolist() == list(range(1, 9))
    assert said == ["labels in column 'label', predictions in column 'prediction', times in column 'timestamp'"]


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_a_pipe_gives_the_same_events(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    code = "from fourrates import io\nfor b in io.read('-'): print(b.truths.tolist(), b.preds.tolist(), b.source)"
    done = subprocess.run([sys.executable, "-c", code], input=path.read_bytes(), capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"{TRUTH} {PRED} standard input"


def frames():
    import pandas as pd
    import polars as pl

    columns = {"y_true": TRUTH, "y_pred": PRED}
    return {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "polars lazy": pl.DataFrame(columns).lazy(),
        "pyarrow": pa.table(columns),
        "mapping": columns,
        "mapping of arrays": {name: np.array(column) for name, column in columns.items()},
        "arrays": (np.array(TRUTH), np.array(PRED, bool)),
        "one array": np.column_stack([TRUTH, PRED]),
        "iterator": zip(TRUTH, PRED, strict=True),
        "generator": (pair for pair in zip(TRUTH, PRED, strict=True)),
    }


@pytest.mark.parametrize("kind", frames())
def test_frames_arrays_and_iterators_give_the_same_events(kind):
    assert together(io.read(frames()[kind])) == (TRUTH, PRED)


def test_several_files_a_glob_and_a_folder_are_read_in_order(tmp_path):
    for day in range(3):
        (tmp_path / f"day-{day}.csv").write_text(f"y_true,y_pred\n{day % 2},1\n")
    (tmp_path / "notes.txt").write_text("not data")
    wanted = ([0, 1, 0], [1, 1, 1])
    assert together(io.read([tmp_path / f"day-{day}.csv" for day in range(3)])) == wanted
    assert together(io.read(str(tmp_path / "day-*.csv"))) == wanted
    assert together(io.read(tmp_path)) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("actual,predicted\n1,0\n", "labels in column 'actual', predictions in column 'predicted'"),
        ("Y True,yPred,junk\n1,0,3\n", "labels in column 'Y True', predictions in column 'yPred'"),
        ("target,score\n1,0.3\n", "labels in column 'target', scores in column 'score' (positive from 0.5 on)"),
    ],
)
def test_columns_are_guessed_from_common_names_and_the_guess_is_said(tmp_path, text, said):
    path = tmp_path / "x.csv"
    path.write_text(text)
    heard = []
    assert together(io.read(path, on_message=heard.append)) == ([1], [0])
    assert heard == [said]


def test_named_columns_are_not_guessed_and_not_said(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,prediction,truth_from_review\n0,0,1\n")
    heard = []
    columns = io.Columns(truth="truth_from_review", pred="prediction")
    assert together(io.read(path, columns=columns, on_message=heard.append)) == ([1], [0])
    assert heard == []


def test_a_score_is_cut_at_the_threshold():
    events = io.read({"label": [0, 1, 1], "score": [0.69, 0.7, 0.9]}, threshold=0.7)
    assert together(events) == ([0, 1, 1], [0, 1, 1])


def test_a_threshold_prefers_the_score_to_the_predictions():
    frame = {"label": [0, 1], "prediction": [0, 0], "score": [0.1, 0.9]}
    assert together(io.read(frame, threshold=0.5)) == ([0, 1], [0, 1])


@pytest.mark.parametrize(
    "values", [["0", "1"], ["0.0", "1.0"], ["false", "True"], [False, True], [0.0, 1.0], [" 0", "1 "]]
)
def test_text_is_the_label_it_spells(values):
    assert together(io.read({"label": values, "prediction": values})) == ([0, 1], [0, 1])


def test_labels_are_words_or_many(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,prediction\ncat,dog\ncow,cow\ndog,cat\n")
    assert together(io.read(path, labels=["cat", "dog", "cow"])) == ([0, 2, 1], [1, 2, 0])
    assert together(io.read({"label": ["ok"], "prediction": ["fraud"]}, labels=["fraud", "ok"], positive="fraud")) == (
        [0],
        [1],
    )


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_rows_without_a_label_are_skipped_and_bad_rows_reject_unless_skipped(tmp_path, name):
    path = tmp_path / name
    truth, pred = [1, None, 0, 1], [1, 1, 0, None]
    frame = pa.table({"y_true": truth, "y_pred": pred})
    if name == "x.csv":
        path.write_text("y_true,y_pred\n1,1\n,1\n0,0\n1,NA\n")
    elif name == "x.jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_pylist()))
    else:
        pq.write_table(frame, path)
    events = io.read(path, bad="skip")
    (batch,) = events
    assert (batch.truths.tolist(), batch.preds.tolist(), batch.rows.tolist()) == ([1, 0], [1, 0], [1, 3])
    assert (events.rows, events.skipped, events.warnings.unlabelled) == (4, 2, 1)
    where = {"x.csv": "line 5", "x.jsonl": "line 4", "x.parquet": "row 4"}[name]
    with pytest.raises(io.InputError, match=f"{where}: the value in column 'y_pred' is missing"):
        list(io.read(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,prediction\n1,1\n\n0,maybe\n", "line 4: 'maybe' in column 'prediction' is not one of the labels 0, 1"),
        ('label,prediction,why\n1,1,"two\nlines"\n0,2,\n', "line 4: '2' in column 'prediction' is not one of"),
        ("label,prediction\n1,1\n1,1,1\n", "line 3: 3 fields instead of 2"),
        ("label,prediction\n1,1\n1\n", "line 3: 1 fields instead of 2"),
        ("label,prediction\nham,spam\n", "if these are the labels: --classes ham,spam"),
        ("label,prediction\n", "a header and no rows"),
        ("a,b,c\n1,1,1\n", r"which column holds the true labels \(--truth\)\? There are 'a', 'b', 'c'$"),
        ("id,y_hat\n1,1\n", r"There are 'id', 'y_hat'; in a second file: detect --labels-from FILE$"),
        ("<!doctype html>\n<html>\n", r"There is only '<!doctype html>'; is it a table\?$"),
        ("label,b,c\n1,1,1\n", r"which column holds the predictions \(--pred, or --score\)\?"),
        ("label,label\n1,1\n", "column 'label' is there twice"),
        ('{"label": 1, "prediction": 1}\n{"label": 1\n', "line 2: not JSON"),
        ('{"label": 1, "prediction": 1}\n[1, 1]\n', "line 2: list, not an object"),
        (
            '{"label": 1, "prediction": 1}\n\n{"label": 3, "prediction": 1}\n',
            "line 3: 3 in column 'label' is not one of",
        ),
        ('{"label": 1, "prediction": [1]}\n', "line 1: \\[1\\] in column 'prediction' is not one of"),
        ("", "empty"),
        (" \n ", "empty"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(tmp_path, text, message):
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(io.InputError, match=message) as caught:
        list(io.read(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_labels_come_with_the_option_that_would_name_them(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,prediction\nham,spam\nspam,spam\n")
    with pytest.raises(io.InputError, match=r"--classes ham,spam$"):
        list(io.read(path))


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.jsonl", "x"])
def test_binary_junk_is_named(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(np.random.default_rng(1).bytes(5000))
    with pytest.raises(io.InputError, match=r"binary data|not a Parquet file|not UTF-8"):
        list(io.read(path))


def test_a_file_that_only_begins_like_parquet_is_named(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + bytes(2000))
    with pytest.raises(io.InputError, match=r"x\.parquet: "):
        list(io.read(path))


@pytest.mark.slow
@pytest.mark.parametrize("packing", [".gz", ".bz2", ".zst"])
def test_a_packed_file_cut_short_is_an_error_after_its_sound_part(tmp_path, packing):
    rows = "y_true,y_pred\n" + "1,1\n0,1\n0,0\n" * 300_000
    packed = PACKERS[packing](rows.encode())
    path = tmp_path / f"x.csv{packing}"
    path.write_bytes(packed[: len(packed) * 9 // 10])
    with pytest.raises(io.InputError, match=rf"x\.csv{packing}: "):
        list(io.read(path))


@pytest.mark.parametrize(
    "times",
    [
        ["2026-03-01T00:00:00Z", "2026-03-01T02:30:00+01:00"],
        [1772323200, 1772328600],
        [1772323200_000, 1772328600_000],
        [1772323200_000_000_000, 1772328600_000_000_000],
        [1772323200.0, 1772328600.0],
    ],
)
def test_times_with_a_zone_and_epochs_are_utc(tmp_path, times):
    path = tmp_path / "x.csv"
    path.write_text("y_true,y_pred,when\n" + "".join(f"1,1,{time}\n" for time in times))
    for source in (path, {"y_true": [1, 1], "y_pred": [1, 1], "when": times}):
        events = io.read(source, columns=io.Columns(time="when"))
        (batch,) = events
        assert batch.times.tolist() == TIMES[:2].tolist()
        assert events.utc


def test_a_time_that_is_none_is_named(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"y_true": 1, "y_pred": 1, "when": "yesterday"}\n')
    with pytest.raises(io.InputError, match="line 1: 'yesterday' in column 'when' is not a time"):
        list(io.read(path, columns=io.Columns(time="when")))


def test_numbers_in_a_column_called_time_are_not_guessed_to_be_times():
    events = io.read({"y_true": [1], "y_pred": [1], "time": [17]})
    list(events)
    assert events.columns.time is None


def test_keys_number_the_streams_in_order_of_appearance(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("model,y_true,y_pred\nb,1,1\na,1,1\nb,0,0\n,1,1\n")
    events = io.read(path, columns=io.Columns(by="model"), bad="skip")
    (batch,) = events
    assert batch.keys.tolist() == [0, 1, 0]
    assert events.keys == ["b", "a"]
    assert events.skipped == 1


def test_two_columns_of_labels_without_a_header_are_taken_and_said(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("1,0\n0,0\n")
    said = []
    assert together(io.read(path, on_message=said.append)) == ([1, 0], [0, 0])
    assert said[0].startswith("no header")


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("y_true,y_pred\n1,0\n", encoding="utf-8-sig")
    assert together(io.read(path)) == ([1], [0])


def test_lines_arriving_in_any_pieces_give_the_same_events():
    text = "".join(f"{t},{g}\r\n" for t, g in zip(TRUTH, PRED, strict=True))
    for size in (1, 2, 3, 7, 100):
        tail = io.Tail(io.read("-"), "a pipe")
        data = ("label,prediction\n" + text).encode().rstrip()
        batches = [batch for at in range(0, len(data), size) for batch in tail.feed(data[at : at + size])]
        batches += tail.finish()
        assert together(batches) == (TRUTH, PRED)
        assert np.concatenate([batch.rows for batch in batches]).tolist() == list(range(1, 9))


def test_a_row_means_the_same_in_every_format_and_in_a_pipe(tmp_path):
    """Counted from 1; neither the header nor a blank line is a row."""
    texts = {
        "x.csv": "y_true,y_pred\n1,1\n\n0,1\n,1\n0,0\n",
        "x.jsonl": '{"y_true": 1, "y_pred": 1}\n\n{"y_true": 0, "y_pred": 1}\n{"y_pred": 1}\n'
        '{"y_true": 0, "y_pred": 0}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (batch,) = io.read(tmp_path / name)
        (piped,) = io.Tail(io.read("-"), "a pipe").feed(text.encode())
        assert batch.rows.tolist() == piped.rows.tolist() == [1, 2, 4]


def test_json_lines_may_leave_names_out():
    tail = io.Tail(io.read("-"), "a pipe")
    (batch,) = tail.feed(b'{"y_true": 1, "y_pred": 0, "x": 2}\n\n{"y_pred": 1}\n{"y_true": 0, "y_pred": 0}\n')
    assert batch.rows.tolist() == [1, 3]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_memory_stays_flat_whatever_the_size(tmp_path):
    """Peaks differ by less than the codes of 4 million rows would take (16 MB), whatever more is read.

    Of CSV both sizes are above the 32 MB that pyarrow reads ahead, up to which the peak grows.
    """
    code = "import sys; from fourrates import io\nfor b in io.read(sys.argv[1]): pass\n"
    code += "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    for name, sizes in (("x.csv", (10_000_000, 20_000_000)), ("x.parquet", (500_000, 4_000_000))):
        peaks = []
        for rows in sizes:
            path = tmp_path / f"{rows}-{name}"
            if name == "x.csv":
                path.write_text("y_true,y_pred\n" + "1,1\n0,1\n" * (rows // 2))
            else:
                pq.write_table(
                    pa.table({"y_true": TRUTH * (rows // 8), "y_pred": PRED * (rows // 8)}), path, row_group_size=rows
                )
            done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=True, text=True)
            peaks.append(int(done.stdout))
        assert peaks[1] - peaks[0] < 16_000, peaks


def test_reading_needs_no_more_than_numpy_until_it_reads():
    code = "import sys; import fourrates.io; print([m for m in ('pyarrow', 'narwhals', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("spread", [5, 100, 10**12])
def test_keys_are_numbered_alike_whether_they_lie_close_or_far_apart(kind, spread):
    info = np.iinfo(kind)
    random = np.random.default_rng(1)
    keys = (
        random.choice([info.min, info.max, *range(50)], 200) if spread > info.max else random.integers(0, spread, 200)
    )
    keys = np.concatenate([keys.astype(kind), np.array([info.max], kind) - np.arange(20).astype(kind)])
    values, positions, gone = distinct_values(keys)
    unique, inverse = np.unique(keys, return_inverse=True)
    assert (values, positions.tolist(), gone) == (unique.tolist(), inverse.tolist(), None)
    for part in (keys[-20:], keys[:1]):
        values, positions, _ = distinct_values(part)
        assert [values[at] for at in positions] == part.tolist()


def test_a_missing_time_or_key_is_missing_whatever_pyarrow_leaves_in_its_place():
    times = pa.array([10**15, None, 3 * 10**15, 4 * 10**15], pa.timestamp("us"))
    keys = pa.array([7, 8, None, 9])
    epochs = pa.array([1_700_000_000, None, 1_700_000_001, 1_700_000_002])
    labels = pa.array([1, 0, 1, 0])
    for column in (times, epochs):
        table = pa.table({"y_true": labels, "y_pred": labels, "when": column, "model": keys})
        events = io.read(table.slice(1), columns=io.Columns(time="when", by="model"), bad="skip")
        (batch,) = events
        assert np.isnat(batch.times).tolist() == [True, False]
        assert events.keys == ["8", "9"]
        assert events.skipped == 1


def test_text_that_is_not_utf_8_is_refused_and_other_letters_than_ascii_are_read(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("y_true,y_pred\n" + "größe,klein\n" * 10, encoding="utf-8")
    (batch,) = io.read(path, labels=["klein", "größe"])
    assert batch.truths.tolist() == [1] * 10
    path.write_bytes(b"y_true,y_pred\n" + b"1,0\n" * 40_000 + b"1,\xff\n")
    with pytest.raises(io.InputError, match="not text in UTF-8"):
        list(io.read(path))


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("pair", [(2**63 - 2, 2**63 - 1), (2**53, 2**53 + 1), (-(2**63), -(2**63) + 1)])
def test_whole_numbers_that_floats_cannot_tell_apart_are_two_labels(tmp_path, pair, given):
    path = tmp_path / "x.csv"
    path.write_text("y_true,y_pred\n" + "".join(f"{pair[i % 2]},{pair[i % 3 % 2]}\n" for i in range(12)))
    events = io.read(path, labels=pair if given else None)
    (batch,) = events
    assert [events.labels.values[code] for code in batch.truths] == [pair[i % 2] for i in range(12)]
    assert [events.labels.values[code] for code in batch.preds] == [pair[i % 3 % 2] for i in range(12)]


@pytest.mark.parametrize("block", [5, 16, 64, 1 << 20])
def test_a_line_end_between_quotes_does_not_end_a_row_wherever_blocks_are_cut(tmp_path, monkeypatch, block):
    path = tmp_path / "x.csv"
    rows = [f'{i % 2},"a ""word"",\nand\n\nmore {i}",{i % 3 % 2}\n' for i in range(40)]
    path.write_text("\ny_true,note,y_pred\n" + "".join(rows))
    monkeypatch.setattr("fourrates.io.formats.BLOCK", block)
    events = io.read(path, columns=io.Columns(by="note"))
    assert together(events) == ([i % 2 for i in range(40)], [i % 3 % 2 for i in range(40)])
    assert events.keys == [f'a "word",\nand\n\nmore {i}' for i in range(40)]


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_a_word_among_the_scores_of_a_csv_file_is_a_bad_row(tmp_path, monkeypatch, block):
    path = tmp_path / "x.csv"
    path.write_text("y_true,score\n" + "1,0.75\n" * 40 + "0,egg\n" + "0,0.25\n" * 40)
    monkeypatch.setattr("fourrates.io.formats.BLOCK", block)
    with pytest.raises(io.InputError, match="line 42: 'egg' in column 'score' is not a score"):
        list(io.read(path))
    events = io.read(path, bad="skip")
    assert together(events) == ([1] * 40 + [0] * 40, [1] * 40 + [0] * 40)
    assert (events.rows, events.skipped) == (81, 1)


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_json_lines_may_be_blank_and_have_nan_for_what_is_missing(tmp_path, monkeypatch, block):
    path = tmp_path / "x.jsonl"
    plain = '{"y_true": 1, "more": [{}], "y_pred": 0}\n'
    path.write_text(plain * 9 + '\n{"y_true": NaN, "y_pred": 1}\n  \n{"y_true": 0, "y_pred": 1}\n' + plain * 9)
    monkeypatch.setattr("fourrates.io.formats.BLOCK", block)
    events = io.read(path)
    batches = list(events)
    assert together(batches) == ([1] * 9 + [0] + [1] * 9, [0] * 9 + [1] + [0] * 9)
    assert np.concatenate([batch.rows for batch in batches]).tolist() == [*range(1, 10), *range(11, 21)]
    assert (events.rows, events.skipped, events.warnings.unlabelled) == (20, 1, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("short.csv", "label,prediction\n1,1\n1\n\n0,0,0\n0,1\n"),
        ("bad.jsonl", '{"label": 1, "prediction": 1}\n{"label": 1\n\n[1, 1]\n{"label": 0, "prediction": 1}\n'),
    ],
)
def test_lines_that_are_no_row_can_be_skipped(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    events = io.read(path, bad="skip")
    tail = io.Tail(io.read("-", bad="skip"), name)
    for source, batches in ((events, [*events]), (tail.events, [*tail.feed(text.encode())])):
        assert [pred for batch in batches for pred in batch.preds.tolist()] == [1, 1]
        assert [row for batch in batches for row in batch.rows.tolist()] == [1, 4]
        assert source.data_warnings()["skipped"] == "2 of 4 rows skipped: 2 are bad"


def test_a_stray_label_beside_scores_is_named_with_its_line(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("label,score\nham,.1\nspam,.9\nham,.2\nn.a,.3\n")
    with pytest.raises(io.InputError, match=r"line 5: 'n.a' is a label beside ham,spam, .*--classes ham,spam rejects"):
        [*io.read(path, labels=None)]
