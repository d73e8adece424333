"""Dates as people write them, in every place where times are read."""

import gzip
import json

import msgspec
import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.events.clock import Clock
from fourrates.io import Columns, InputError, Tail
from fourrates.io.tail import Format

START = np.datetime64("2026-09-01T00:05", "us")
MOMENTS = START + np.arange(40) * np.timedelta64(13, "h")  # into the third week
STYLES = {"dots": "%d.%m.%Y %H:%M", "day first": "%d/%m/%Y %H:%M", "month first": "%m/%d/%Y %H:%M:%S"}


def written(style, moments=MOMENTS):
    return [moment.item().strftime(STYLES[style]) for moment in moments]


def frame(texts):
    return {"y_true": [0, 1] * (len(texts) // 2), "y_pred": [0, 1] * (len(texts) // 2), "time": texts}


def csv_lines(texts):
    return ["y_true,y_pred,time", *(f"{i % 2},{i % 2},{text}" for i, text in enumerate(texts))]


def as_csv(texts, folder):
    path = folder / "some.csv"
    path.write_text("\r\n".join(csv_lines(texts)) + "\r\n")
    return path


def as_packed(texts, folder):
    path = folder / "some.csv.gz"
    path.write_bytes(gzip.compress("\n".join(csv_lines(texts)).encode()))
    return path


def as_json(texts, folder):
    path = folder / "some.jsonl"
    rows = [{"y_true": i % 2, "y_pred": i % 2, "time": text} for i, text in enumerate(texts)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def as_parquet(texts, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(frame(texts)), folder / "some.parquet")
    return folder / "some.parquet"


def as_pandas(texts, _):
    return pytest.importorskip("pandas").DataFrame(frame(texts))


def as_arrays(texts, _):
    return {name: np.array(column) for name, column in frame(texts).items()}


SOURCES = [as_csv, as_packed, as_json, as_parquet, as_pandas, as_arrays]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("source", SOURCES)
def test_dates_are_read_alike_from_everything_and_the_guess_is_said(source, style, tmp_path):
    said = []
    events = io.read(source(written(style), tmp_path), columns=Columns(time="time"), on_message=said.append)
    times = np.concatenate([batch.times for batch in events])
    assert (times == MOMENTS).all()
    assert not events.utc
    first = "month" if style == "month first" else "day"
    assert f"dates in column 'time' have the {first} first" in said


@pytest.mark.parametrize("source", SOURCES)
def test_a_column_with_dots_is_found_as_the_times(source, tmp_path):
    said = []
    events = io.read(source(written("dots"), tmp_path), on_message=said.append)
    assert (np.concatenate([batch.times for batch in events]) == MOMENTS).all()
    assert "times in column 'time'" in said[0]


@pytest.mark.parametrize("source", SOURCES)
def test_slashes_that_may_be_either_are_refused_with_what_to_do(source, tmp_path):
    texts = written("month first", MOMENTS[:10])  # the first of September to the sixth
    why = "'09/01/2026 00:05:00' in column 'time' may be 9 January or 1 September; write dates as 2026"
    with pytest.raises(InputError, match=why):
        list(io.read(source(texts, tmp_path), columns=Columns(time="time")))


def test_the_first_date_that_shows_an_order_decides_for_all_of_the_source():
    with pytest.raises(InputError, match="row 2: '09/13/2026' in column 'time' is not a time"):
        list(io.read(frame(["13/09/2026", "09/13/2026"]), columns=Columns(time="time")))
    texts = ["2026-09-01", "09/13/2026", "01.09.2026", None, "soon", "13/09/2026", "2026-09-01T05:00Z", "02/03/2026"]
    whole, wrong = Clock().read(texts)[::2]
    assert wrong.tolist() == [False, False, False, False, True, True, False, False]
    assert [str(time)[:10] for time in whole[[1, 2, 7]]] == ["2026-09-13", "2026-09-01", "2026-02-03"]
    for cut in range(1, len(texts)):  # wherever it is cut
        clock = Clock()
        parts = [clock.read(part) for part in (texts[:cut], texts[cut:])]
        assert np.array_equal(np.concatenate([one[0] for one in parts]), whole, equal_nan=True)


def test_an_epoch_in_nanoseconds_is_the_same_moment_as_an_integer_a_text_and_in_a_list():
    value = 1_788_264_000_123_456_789
    columns = [[value], [value, None], [str(value), "2026-09-01"], np.array([value]), np.array([value], np.uint64)]
    assert {str(Clock().read(column)[0][0]) for column in columns} == {"2026-09-01T12:00:00.123456"}
    assert str(Clock("ns").read(np.array([2**63 + 10**15], np.uint64))[0][0])[:4] == "2262"


def test_the_unit_is_that_of_the_first_row_whatever_the_order_in_a_dictionary():
    pa = pytest.importorskip("pyarrow")
    values = pa.array([5_000_000_000_000, 1_788_264_000, 1_788_264_060_000])
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 2, 1]), values)
    times, _, wrong = Clock().read(column)
    assert (str(times[0]), wrong.tolist()) == ("2026-09-01T12:00:00.000000", [False, False, True, False])
    assert np.isnat(times[1])


@pytest.mark.parametrize("text", ["31.02.2026", "01.13.2026", "1.9.26", "01.09/2026", "01.09.2026 25:00", "0.0.2026"])
def test_what_is_no_date_is_refused_as_it_was_written(text):
    with pytest.raises(InputError, match=f"row 2: '{text}' in column 'time' is not a time"):
        list(io.read(frame(["01.09.2026", text]), columns=Columns(time="time")))


def test_missing_dates_and_single_digits_and_fractions():
    (batch,) = io.read(frame([None, "1.9.2026", "01.09.2026 7:05:30.25", "NA"]), columns=Columns(time="time"))
    wanted = ["NaT", "2026-09-01", "2026-09-01T07:05:30.25", "NaT"]
    assert batch.times.tolist() == np.array(wanted, "M8[us]").tolist()


def test_what_was_learned_holds_for_later_rows_and_after_a_restart():
    """A row on its own, such as the first of a month, says nothing of what is first."""
    lines = [f"{line}\n".encode() for line in csv_lines(written("month first"))]
    events = io.read([], columns=Columns(time="time"))
    tail = Tail(events, "log.csv")
    found = [*tail.feed(b"".join(lines[:31]))]
    again = io.read([], columns=Columns(time="time"))
    resumed = Tail(again, "log.csv")
    saved = msgspec.to_builtins(tail.format)
    resumed.restore(msgspec.convert(json.loads(json.dumps(saved)), Format))
    for line in (b"0,0,10/02/2026 00:00:00\n", b"1,1,10/03/2026 00:00:00\n"):
        found += resumed.feed(line)
    assert [str(batch.times[-1])[:10] for batch in found[-2:]] == ["2026-10-02", "2026-10-03"]
    saved["columns"]["dates"] = "year"
    with pytest.raises(ValueError, match="dates"):
        msgspec.convert(saved, Format)


def test_late_labels_may_have_dates_of_their_own():
    size = MOMENTS.size
    predictions = {"id": [*range(size)], "y_pred": [0, 1] * (size // 2), "time": written("dots")}
    labels = {"id": [*range(size)], "y_true": [0, 1] * (size // 2), "date": written("month first")}
    found = fr.detect(predictions, labels_from=labels, id="id")
    assert found.events == size
    assert found.watch.first_time == START


def test_dates_in_a_column_of_another_name_are_hinted_at():
    said = []
    other = {("Datum" if name == "time" else name): column for name, column in frame(written("dots")).items()}
    assert next(iter(io.read(other, on_message=said.append))).times is None
    assert said == [
        "labels in column 'y_true', predictions in column 'y_pred'",
        "no times are read; dates are in column 'Datum' (--time)",
    ]


def test_when_labels_were_known_is_read_from_a_column_that_says_so():
    size = MOMENTS.size
    predictions = {"id": [*range(size)], "y_pred": [0, 1] * (size // 2), "time": written("dots")}
    labels = {"id": [*range(size)], "y_true": [0, 1] * (size // 2)}
    found = fr.detect(predictions, labels_from=labels | {"known_at": written("dots")}, id="id")
    assert found.events == size
    assert "times in column 'known_at'" in " ".join(found.messages)
    found = fr.detect(predictions, labels_from=labels | {"booked": written("dots")}, id="id")
    assert "dates are in column 'booked' (name it known_at if labels were known then)" in " ".join(found.messages)
