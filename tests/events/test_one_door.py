"""One story: an awkward value is read, or rejected for the same reason, at every door.

Kafka and Spark are in tests/engines.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from awkward import CASES, LABELS, NAMES, VERSIONS, from_frame, meaning, names_of

import fourrates as fr
from fourrates import io

BASE = {"y_true": 1, "y_pred": 0}
IDS = [f"{column} {value!r:.30}" for column, value in CASES]


def from_file(path, names):
    """What the only row of a file means, or why it was not read."""
    events = io.read(str(path), columns=io.Columns(**names))
    try:
        batches = [*events]
    except io.InputError as error:
        said = re.sub(r"^.*?\.\w+(, (row|line) \d+)?[:,] ", "", str(error))
        return said.partition("; if these are the labels")[0]
    if not batches:
        return "unlabelled"
    (batch,) = batches
    return meaning(batch, events.keys)


def fits_arrow(value):
    return not isinstance(value, list | dict) and not (isinstance(value, int) and value > 2**63 - 1)


def as_table(row):
    return pa.table({name: [value] for name, value in row.items()})


@pytest.mark.parametrize(("column", "value"), CASES + VERSIONS, ids=[*IDS, *map(str, VERSIONS)])
@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow"])
def test_a_file_means_what_a_frame_means(kind, column, value, tmp_path):
    row, path = BASE | {column: value}, tmp_path / f"one.{kind}"
    if kind == "jsonl":
        if isinstance(value, Decimal | date):
            pytest.skip("JSON has no such value")
        path.write_text(json.dumps(row) + "\n")
    elif not fits_arrow(value):
        pytest.skip("Arrow has no such value")
    elif kind == "parquet":
        pa.parquet.write_table(as_table(row), path)
    else:
        pa.feather.write_feather(as_table(row), path)
    assert from_file(path, names_of(column)) == from_frame(row, names_of(column))


@pytest.mark.parametrize(("column", "value"), CASES, ids=IDS)
def test_the_text_of_a_csv_means_what_the_text_in_a_frame_means(column, value, tmp_path):
    if isinstance(value, list | dict):
        pytest.skip("CSV has no such value")
    text = "" if value is None else str(value)
    path = tmp_path / "one.csv"
    row = {"y_true": "1", "y_pred": "0"} | {column: text}
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in row.values()]
    path.write_text(",".join(row) + "\n" + ",".join(quoted) + "\n")
    got, wanted = from_file(path, names_of(column)), from_frame(row, names_of(column))
    if column == "at" and isinstance(got, str):  # the value is shown as the reader of CSV has it: True, 1e+30
        got, wanted = got.partition(" in column")[2], wanted.partition(" in column")[2]
    assert got == wanted


@pytest.mark.parametrize("value", LABELS, ids=repr)
def test_a_detector_means_what_a_frame_means(value):
    wanted = from_frame({"y_true": 1, "y_pred": value}, NAMES)
    detector = fr.FourRates()
    if isinstance(wanted, str):
        with pytest.raises(ValueError, match="y_pred"):
            detector.update_many([1], [value])
        assert detector.events == 0
    else:
        detector.update_many([1], [value])
        assert detector.rates["tpr"].estimate == wanted[1]


# Findings -------------------------------------------------------------------------------------------------------

SIZE = 20_000


def story():
    """Two segments over two weeks; in one of them the recall falls, and comes back."""
    rng = np.random.default_rng(12)
    y_true = (rng.random(SIZE) < 0.3).astype(int)
    key = rng.choice(["DE", "Åse"], SIZE)
    away = (np.arange(SIZE) >= 9_000) & (np.arange(SIZE) < 14_000) & (key == "DE")
    right = rng.random(SIZE) < np.where(away & (y_true == 1), 0.5, 0.92)
    times = np.datetime64("2026-09-01T00:00", "s") + 61 * np.arange(SIZE)
    return {"y_true": y_true, "y_pred": np.where(right, y_true, 1 - y_true), "k": key, "time": times}


def told(findings):
    """Findings without the file they are from."""
    bare = [replace(one, source=None, about=one.about and replace(one.about, source=None)) for one in findings]
    return [replace(one, row=None, started_row=None, about=None) for one in bare], [one.about for one in bare]


def written(data, kind, path):
    table = pa.table({name: pa.array(column.tolist()) for name, column in data.items()})
    if kind == "csv":
        rows = zip(*(map(str, column.tolist()) for column in data.values()), strict=True)
        times = [str(one) for one in data["time"]]
        lines = [",".join((*row[:3], time)) for row, time in zip(rows, times, strict=True)]
        path.write_text("\n".join([",".join(data), *lines]) + "\n")
    elif kind == "jsonl":
        columns = {**data, "time": data["time"].astype(np.int64)}  # seconds since 1970
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        path.write_text("".join(json.dumps(dict(zip(data, row, strict=True))) + "\n" for row in rows))
    elif kind == "parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.feather.write_feather(table, path)
    return str(path)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_the_findings_of_a_file_are_those_of_the_frame_with_all_fields(kind, tmp_path):
    data = story()
    wanted = fr.detect(data, by="k", time="time", budget=20_000)
    assert {one.kind for one in wanted} >= {"drift", "confirmation", "recovery"}
    found = fr.detect(written(data, kind, tmp_path / f"one.{kind}"), by="k", time="time", budget=20_000)
    assert told(found) == told(wanted)
    assert [one.row for one in found] == [one.row for one in wanted]
    assert found.now().to_json() == wanted.now().to_json() | {"open": found.now().to_json()["open"]}


@pytest.mark.parametrize("cuts", [[7], [9_100, 9_160, 14_010], range(500, SIZE, 500)])
def test_the_findings_do_not_depend_on_where_the_input_was_cut(cuts):
    data = story()
    wanted = [*fr.detect(data, by="k", time="time", budget=20_000)]
    watch = fr.Watch(fr.FourRates(20_000), by="k", time="time")
    found = []
    for start, end in pairwise([0, *cuts, SIZE]):
        found += watch.update({name: column[start:end] for name, column in data.items()})
        watch = fr.Watch.from_bytes(watch.to_bytes())
    assert told(found)[0] == told(wanted)[0]


def test_a_watch_keeps_the_unit_of_its_times_from_batch_to_batch_and_over_a_state():
    watch = fr.Watch(fr.FourRates(), time="at")
    watch.update({"y_true": [1, 0], "y_pred": [1, 0], "at": [1_788_264_000, "13/09/2026"]})
    watch = fr.Watch.from_bytes(watch.to_bytes())
    watch.update({"y_true": [1, 0], "y_pred": [1, 0], "at": ["01/10/2026", 1_790_812_800]})
    assert str(watch.last_time)[:10] == "2026-10-01"
    with pytest.raises(io.InputError, match="1788264000000 in column 'at' is not a time in s since 1970"):
        watch.update({"y_true": [1], "y_pred": [1], "at": [1_788_264_000_000]})
    assert watch.events == 4


def test_the_lines_of_the_command_line_are_those_of_the_frame(tmp_path):
    data = story()
    wanted = [*fr.detect(data, by="k", time="time", budget=20_000)]
    path = written(data, "csv", tmp_path / "one.csv")
    words = [path, "--by", "k", "--time", "time", "--budget", "20000"]
    ran = subprocess.run([sys.executable, "-m", "fourrates", "detect", *words, "--json"], capture_output=True)
    detected = json.loads(ran.stdout)["findings"]
    ran = subprocess.run(
        [sys.executable, "-m", "fourrates", "watch", "-", *words[1:], "--json"],
        input=(tmp_path / "one.csv").read_bytes(),
        capture_output=True,
    )
    watched = [json.loads(line) for line in ran.stdout.splitlines()]
    facts = ("kind", "segment", "at", "time", "started", "started_time")
    lines = [[one.get(name) for name in facts] for one in detected]
    assert lines == [
        [one.kind, one.segment, one.at, str(one.time)[:19], one.started, one.started_time and clock(one.started_time)]
        for one in wanted
    ]
    renamed = [one | {"segment": one.get("segment", one.get("stream"))} for one in watched if one["kind"] != "warning"]
    assert [[one.get(name) for name in facts] for one in renamed] == lines


def clock(time):
    text = str(time.astype("M8[us]"))
    return text.rstrip("0").rstrip(".") if "." in text else text


def test_the_findings_of_the_service_are_those_of_a_watch(tmp_path):
    pytest.importorskip("starlette")
    from fourrates.serve.batch import EVENTS, Batch
    from fourrates.serve.config import MonitorConfig
    from fourrates.serve.monitor import Monitor
    from fourrates.serve.settings import Settings

    data = story()
    overall = fr.FourRates(40_000, labels=[0, 1])
    watch = fr.Watch(fr.FourRates(40_000, labels=[0, 1], mix="ignore"), by="k", time="time", overall=overall)
    wanted = watch.update(data)
    monitor = Monitor(MonitorConfig(arl=20_000, by=["k"]), bytes(16), Settings(data=tmp_path))
    found = []
    for start in range(0, SIZE, 777):
        part = {name: column[start : start + 777] for name, column in data.items()}
        names, codes = np.unique(part["k"], return_inverse=True)
        batch = Batch(EVENTS, 2e9, len(codes), bytes(part["y_true"].tolist()), bytes(part["y_pred"].tolist()))
        batch.times = part["time"].astype(np.int64).astype("<f8").tobytes()
        batch.segments, batch.segment_codes = names.tolist(), codes.astype("<u4").tobytes()
        found += monitor.apply(batch).findings
    assert told(found)[0] == told(wanted)[0]


# The service ----------------------------------------------------------------------------------------------------


def micros(seconds):
    return str(np.datetime64(round(1e6 * seconds), "us"))


def from_service(body, kind, by, received=1.9e9):
    """The same, by the door of the service."""
    pytest.importorskip("starlette")
    from fourrates.serve.batch import KINDS
    from fourrates.serve.bodies import Limits, Plan, make_batch, read_table
    from fourrates.serve.config import MonitorConfig
    from fourrates.serve.errors import ApiError

    limits = Limits(100, 1 << 20)
    try:
        table = read_table(body, kind, by, limits)
        plan = Plan(MonitorConfig(by=by))
        batch, rejected = make_batch(KINDS["events"], table, plan, received, limits=limits, skip=True)
    except ApiError as error:
        return error.message
    if rejected:
        return "unlabelled" if rejected[0].code == "unlabelled" else rejected[0].problem
    times = (
        None
        if not batch.times
        else str(pa.array([int(1e6 * batch.time_column()[0])], pa.timestamp("us")).to_numpy()[0])
    )
    (segment,) = batch.segments or [None]
    return batch.truths[0], batch.preds[0], times, None if segment is None else str(json.loads(segment)[0])


RENAMED = {"at": "time", "k": "k"}


@pytest.mark.parametrize(("column", "value"), CASES, ids=IDS)
@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"])
def test_a_request_means_what_a_frame_means(kind, column, value):
    name = RENAMED.get(column, column)
    row, names = BASE | {name: value}, NAMES | {"at": {"time": "time"}, "k": {"by": "k"}}.get(column, {})
    wanted = from_frame(row, names)
    by = ["k"] if column == "k" else []
    if kind == "application/vnd.apache.arrow.stream":
        if not fits_arrow(value):
            pytest.skip("Arrow has no such value")
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, as_table(row).schema) as writer:
            writer.write_table(as_table(row))
        body = sink.getvalue().to_pybytes()
    elif isinstance(value, Decimal | date):
        pytest.skip("JSON has no such value")
    elif kind == "application/x-ndjson":
        body = json.dumps(row).encode()
    else:
        lists = {name: [value] for name, value in row.items() if name not in by}
        body = json.dumps(lists | ({"by": {"k": [row["k"]]}} if by else {})).encode()
    got = from_service(body, kind, by)
    if isinstance(got, tuple) and wanted is not None and isinstance(wanted, tuple) and wanted[2] == "NaT":
        assert got[2] == micros(1.9e9)  # when it was received
        got, wanted = (*got[:2], None, got[3]), (*wanted[:2], None, wanted[3])
    assert got == wanted


def from_event(kind, payload, by, **attributes):
    """What the batch of an event has, by `made`; what was asked, if anything was, arrives before its answer."""
    from types import SimpleNamespace

    from fourrates.serve.bodies import Plan
    from fourrates.serve.cloudevents import CloudEvents, Event
    from fourrates.serve.config import MonitorConfig
    from fourrates.serve.settings import Settings

    live = SimpleNamespace(plan=Plan(MonitorConfig(by=by)), row=SimpleNamespace(uid="m"))
    door = CloudEvents(None, None, Settings(data=Path()))
    if by:
        asked = Event("a.inference.request", "r", data=json.dumps({"instances": [payload.pop("asked")]}).encode())
        assert door.columns(live, asked) is None
    event = Event(kind, "r", data=json.dumps(payload).encode(), **attributes)
    return made(*door.columns(live, event), live.plan)


def made(kind, table, plan):
    """What a batch of predictions or of labels has, or why it was not read."""
    from fourrates.serve.bodies import Limits, make_batch
    from fourrates.serve.errors import ApiError

    try:
        batch, rejected = make_batch(kind, table, plan, 1.9e9, limits=Limits(100, 1 << 20), skip=True)
    except ApiError as error:
        return error.message
    if rejected:
        return rejected[0].code, rejected[0].problem
    return batch.truths, batch.preds, batch.times, batch.ids, batch.segments


@pytest.mark.parametrize(("column", "value"), CASES, ids=IDS)
@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_an_event_of_a_model_server_means_what_a_request_means(protocol, column, value):
    pytest.importorskip("starlette")
    from fourrates.serve.batch import KINDS
    from fourrates.serve.bodies import Body, Plan
    from fourrates.serve.config import MonitorConfig

    if isinstance(value, Decimal | date) or (column == "at" and not isinstance(value, str)):
        pytest.skip("neither JSON nor a header has such a value")
    if value == [1]:
        pytest.skip("a row of one value is that value, as it is in a tensor of shape [1, 1]")
    by, ids = ["k"] if column == "k" else [], ["r"]
    pred = value if column == "y_pred" else 0
    outputs = [{"name": "p", "datatype": "BYTES", "shape": [1], "data": [pred]}]
    response = {"predictions": [pred]} if protocol == "v1" else {"outputs": outputs}
    wanted = Body(pred=[pred], id=ids)
    kind, attributes = "a.inference.response", {}
    if column == "y_true":
        kind, response, wanted = (
            "io.seldon.serving.feedback",
            {"truth": {"predictions": [value]}},
            Body(truth=[value], id=ids),
        )
    elif column == "at":
        attributes, wanted.time = {"time": value}, [value]
    elif column == "k":
        response["asked"], wanted.by = {"k": value}, {"k": [value]}
    plan = Plan(MonitorConfig(by=by))
    expected = made(KINDS["labels" if column == "y_true" else "predictions"], wanted, plan)
    assert from_event(kind, response, by, **attributes) == expected
