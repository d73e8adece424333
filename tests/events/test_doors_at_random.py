"""One story beyond the table: random columns of awkward values through every door, and cut anywhere.

Spark, which has types, is in tests/engines.
"""

import json
import random
import re
from contextlib import suppress
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from awkward import KEYS, LABELS, SCORES, TIMES

from fourrates import io
from fourrates.events.batch import Batch, Table
from fourrates.io import Tail

pytest.importorskip("starlette")
from fourrates.labels import Labels, shown
from fourrates.serve.batch import KINDS
from fourrates.serve.bodies import Limits, Plan, make_batch, read_table
from fourrates.serve.config import MonitorConfig

RECEIVED = 1.9e9
ARROW = "application/vnd.apache.arrow.stream"
PROBABILITIES = [0.2, 1, "0.05", True, 0, 1.5, -0.1, 1e-30, None, "x", "", "0,5", "nan", "1e-2"]
DRAWN = "label_probability", "other_probability"
POOLS = {"y_true": LABELS, "y_pred": LABELS, "score": SCORES, "at": [*TIMES, 2**63, "9999-12-31T23:59:59"], "k": KEYS}
POOLS |= dict.fromkeys(DRAWN, PROBABILITIES)
USUAL = {"y_true": [0, 1], "y_pred": [0, 1], "score": [0.2, 0.7], "at": ["2026-09-01", "13/09/2026"], "k": ["a", "b"]}
USUAL |= {DRAWN[0]: [0.3, 0.04], DRAWN[1]: [0.04, 0.3]}
ROLES = {"truth": "y_true", "pred": "y_pred", "score": "score", "time": "at", "by": "k"}
ROLES |= {"probability": DRAWN[0], "other": DRAWN[1]}
KEPT = {
    "any": lambda value: True,
    "text": lambda value: isinstance(value, str),
    "text or nothing": lambda value: value is None or isinstance(value, str),
    "number": lambda value: type(value) in (int, float),
    "integer": lambda value: type(value) is int and abs(value) < 2**63,
}


def drawn(seed):
    """Columns of some rows."""
    draw = random.Random(seed)
    size, columns = draw.choice([1, 2, 3, 5, 9]), {}
    for name, values in POOLS.items():
        kept = draw.choice([*KEPT, "usual", "usual", "few"])
        some = (
            USUAL[name]
            if kept == "usual"
            else draw.sample(values, 3)
            if kept == "few"
            else [*filter(KEPT[kept], values)]
        )
        columns[name] = draw.choices(some, k=size)
    del columns[draw.choice(["score", "y_pred"])]
    for name in ("at", "k"):
        if draw.random() < 0.4:
            del columns[name]
    if draw.random() < 0.7:
        columns = {name: column for name, column in columns.items() if name not in DRAWN}
    if "at" in columns:  # which of the two is first is known from the beginning
        columns = {
            name: [first, *column] for (name, column), first in zip(columns.items(), (1, *[None] * 9), strict=False)
        }
        columns["at"][0] = "13/09/2026"
    return columns, draw


def asked(columns):
    names = {kind: name for kind, name in ROLES.items() if name in columns}
    return io.Columns(**names)


def time_of(times, at):
    return None if times is None or np.isnat(times[at]) else str(times[at].astype("M8[us]"))


def rows_of(batch, names):
    return [
        (truth, (pred, *drawn), time_of(batch.times, at), None if batch.keys is None else names[batch.keys[at]])
        for at, (truth, pred, drawn) in enumerate(
            zip(batch.truths.tolist(), batch.preds.tolist(), draws_of(batch), strict=True)
        )
    ]


def draws_of(batch):
    """For each event the ratio of its probabilities and how many it represents, if it was drawn for labelling."""
    columns = [] if batch.strata is None else [batch.strata.tolist(), batch.volumes.tolist()]
    return [*zip(*columns, strict=True)] if columns else [()] * batch.truths.size


def whole(source, columns):
    """What becomes of each row: what was read of it, or a word and a sentence."""
    events = io.read(source, columns=asked(columns), bad="keep")
    return [row for table in events.tables() for row in story_of(events, table)]


def story_of(events, table):
    if not events.settled:
        events.resolve(list(table.data), table.times, table.source)
    events.door.columns = events.columns
    reading = events.door.reading(table)
    batch, bad = events.door.batch(reading, table), reading.bad
    events._note_clock()
    good = iter(rows_of(batch, events.door.names))
    return [(bad[row].code, bad[row].problem) if bad.mask[row] else next(good) for row in range(table.size)]


def in_pieces(columns, draw):
    """The same of two halves."""
    events, size = io.read(columns, columns=asked(columns), bad="keep"), len(columns["y_true"])
    events.resolve(list(columns))
    cut = draw.randint(0, size)
    parts = [(0, cut), (cut, size)]
    tables = [Table({k: v[a:b] for k, v in columns.items()}, "", np.arange(b - a)) for a, b in parts]
    return [row for table in tables for row in story_of(events, table)]


def followed(text, columns, draw):
    """What a pipe gives, in pieces that end anywhere: rows by their number, and reasons by theirs."""
    events, refused, found = io.read("-", columns=asked(columns)), {}, {}
    header = not text.startswith(b"{")
    tail = Tail(events, "x", refuse=lambda _, line, raw, why: refused.setdefault(line - header, bare(why)))
    pieces = []
    while text:
        size = draw.choice([1, 7, 50, 10_000])
        pieces.append(text[:size])
        text = text[size:]
    for batch in [batch for piece in pieces for batch in tail.feed(piece)] + [*tail.finish()]:
        found |= dict(zip(batch.rows.tolist(), rows_of(batch, events.keys), strict=True))
    return found, refused


def bare(why):
    return re.sub(r"^\S+, line \d+: ", "", why).partition("; if these are the labels")[0]


def by_number(story):
    """A story as a pipe tells it."""
    rows = dict(enumerate(story, 1))
    read = {number: row for number, row in rows.items() if len(row) == 4}
    return read, {number: row[1] for number, row in rows.items() if len(row) == 2 and row[0] != "unlabelled"}


def served(body, kind, columns, plan=None):
    """What becomes of the rows of a request."""
    size, limits = len(columns["y_true"]), Limits(100, 1 << 20)
    plan = plan or planned(columns)
    table = read_table(body, kind, plan.by, limits)
    batch, rejected = make_batch(KINDS["events"], table, plan, RECEIVED, limits=limits, skip=True, shown_rows=size)
    bad = {row.row: (row.code, row.problem) for row in rejected}
    keys = np.frombuffer(batch.segment_codes, "<u4")
    names = [str(json.loads(name)[0]) for name in batch.segments]
    seconds = batch.time_column() if batch.times else [RECEIVED] * size
    times = [None if one == RECEIVED else str(np.datetime64(round(1e6 * one), "us")) for one in seconds]
    truths, preds, drawn = batch.codes("truths"), batch.codes("preds"), batch.probabilities()
    events = Batch(truths, preds, "", np.arange(truths.size))
    draws = draws_of(events if drawn is None else events.sampled(drawn.by_class(preds)))
    segments = [names[key] for key in keys] or [None] * size
    good = iter(
        zip(
            truths,
            [(pred, *draw) for pred, draw in zip(preds.tolist(), draws, strict=True)],
            times,
            segments,
            strict=False,
        )
    )
    return [bad.get(row) or next(good) for row in range(size)]


def planned(columns):
    return Plan(MonitorConfig(by=["k"] if "k" in columns else [], sampled=DRAWN[0] in columns))


def as_served(story, columns):
    """A story with times called `time`, those that are far ahead rejected."""
    ahead = "{} in column 'time' is later than now; times are ISO 8601 or seconds since 1970".format
    late = np.datetime64(int(RECEIVED) + 86_400, "s")
    return [
        ("bad_time", ahead(shown(columns["at"][at])))
        if len(row) == 4 and row[2] and np.datetime64(row[2]) > late
        else tuple(part.replace("'at'", "'time'") if isinstance(part, str) and len(row) == 2 else part for part in row)
        for at, row in enumerate(story)
    ]


def encode(column):
    return column if pa.types.is_null(column.type) else column.dictionary_encode()


def stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


class Message:
    def __init__(self, at, content):
        self.offset, self.value, self.key = (lambda: at), (lambda: content), (lambda: None)


def consumed(messages, columns):
    """What becomes of messages, as a pipe tells it."""
    reader = pytest.importorskip("fourrates.engines.kafka.reader")
    found, refused = {}, {}
    given = [Message(at, content) for at, content in enumerate(messages, 1)]
    for chunk in reader.Reader(Labels([0, 1]), asked(columns)).read("t", 0, given):
        found |= dict(zip(chunk.events.rows.tolist(), rows_of(chunk.events, chunk.names), strict=True))
        refused |= {one.offset: re.sub(r"^t/0, offset \d+: ", "", one.problem) for one in chunk.rejected}
    return found, refused


@pytest.mark.parametrize("seed", range(150))
def test_a_table_means_the_same_at_every_door_and_cut_anywhere(seed, tmp_path):
    columns, draw = drawn(seed)
    wanted = whole(columns, columns)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    values = [value for column in columns.values() for value in column]
    renamed = {name.replace("at", "time") if name == "at" else name: column for name, column in columns.items()}
    assert in_pieces(columns, draw) == wanted
    if not any(isinstance(value, Decimal | date) or value == float("inf") for value in values):
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (tmp_path / "one.jsonl").write_bytes(text)
        assert whole(str(tmp_path / "one.jsonl"), columns) == wanted
        assert followed(text, columns, draw) == by_number(wanted)
        body = {name: column for name, column in renamed.items() if name != "k"}
        body |= {"by": {"k": columns["k"]}} if "k" in columns else {}
        assert served(json.dumps(body).encode(), "application/json", columns) == as_served(wanted, columns)
        lines = text.replace(b'"at": ', b'"time": ')
        assert served(lines, "application/x-ndjson", columns) == as_served(wanted, columns)
        plan, one = planned(columns), {name: [0] for name in columns}
        each = [served(line, "application/x-ndjson", one, plan)[0] for line in lines.splitlines()]
        assert each == as_served(wanted, columns)
        if not any(isinstance(value, list) for value in values):  # which make it a message of columns
            assert consumed(text.splitlines(), columns) == by_number(wanted)
    if any(isinstance(value, list | dict) for value in values):
        return
    texts = {name: ["" if value is None else str(value) for value in column] for name, column in columns.items()}
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in zip(*texts.values(), strict=True)]
    text = "\n".join([",".join(columns), *lines, ""]).encode()
    (tmp_path / "one.csv").write_bytes(text)
    spelled = whole(texts, texts)
    # Of times and scores a value is shown as the reader of CSV has it: 1e+30.
    short = [(row[0], row[1].partition(" in column")[2]) if len(row) == 2 else row for row in spelled]
    read = whole(str(tmp_path / "one.csv"), texts)
    assert [(row[0], row[1].partition(" in column")[2]) if len(row) == 2 else row for row in read] == short
    assert followed(text, texts, draw) == by_number(spelled)
    table = None
    with suppress(pa.ArrowException, OverflowError, ValueError, TypeError):  # values of several types
        table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if table is None or str(table.to_pydict()) != str(columns):
        return
    pa.parquet.write_table(table, tmp_path / "one.parquet")
    pa.feather.write_feather(table, tmp_path / "one.arrow")
    encoded = pa.table({name: encode(table[name].combine_chunks()) for name in columns})
    sliced = pa.concat_tables([table, table]).slice(table.num_rows)
    for source in (table, encoded, sliced, str(tmp_path / "one.parquet"), str(tmp_path / "one.arrow")):
        assert whole(source, columns) == wanted
    served_as = table.rename_columns([*renamed])
    assert served(stream(served_as), ARROW, columns) == as_served(wanted, columns)
    assert consumed([stream(table.slice(at, 1)) for at in range(table.num_rows)], columns) == by_number(wanted)
