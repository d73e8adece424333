"""What `watch` learns from the rows that are in the file already, and the budget of time in every format."""

import gzip
import json
import signal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from fourrates.cli.options import Data
from fourrates.cli.watch import beginning
from fourrates.streams import fraud

from .test_watch_state import ended, start, until

WORDS = np.array(["ok", "fraud"])


def looked(path, **given):
    return beginning(str(path), Data(**given))


def classes(path, **given):
    return [*looked(path, **given).events.labels.values]


def test_the_classes_are_those_of_all_rows_that_are_there(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"\xef\xbb\xbflabel,prediction\r\n" + b"ham,ham\r\n" * 500 + b"egg,ham\r\nspam,spam\r\nnot-yet-en")
    assert classes(path) == ["egg", "ham", "spam"]  # the line without an end is none yet
    assert looked(path).times is None


def test_a_broken_line_is_passed_over(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"label": "a", "prediction": "b"}\n{"label": \n{"label": "c", "prediction": "a"}\n')
    assert classes(path) == ["a", "b", "c"]


def test_the_positive_one_is_the_last(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text("label,prediction\nfraud,ok\nok,ok\n")
    assert classes(path) == ["fraud", "ok"]
    assert classes(path, positive="fraud") == ["ok", "fraud"]
    assert "classes from the data: ok, fraud; fraud is the positive one\n" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "label,prediction\n"])
def test_nothing_is_learned_from_a_file_without_rows(tmp_path, content):
    path = tmp_path / "log.csv"
    path.write_text(content)
    assert looked(path) is None
    assert looked(tmp_path / "not-there.csv") is None
    assert looked("-") is None


def test_one_class_alone_is_a_question_not_a_guess(fourrates, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("label,prediction\nok,ok\n")
    ran = fourrates("watch", path)
    assert ran.status == 2
    assert "only one label, 'ok', in the first 1 rows; name the classes (--classes)" in ran.err


def write(path, stream, end="\n", part=slice(None)):
    rows = zip(np.datetime_as_string(stream.times[part]), stream.y_true[part], stream.y_pred[part], strict=True)
    lines = [f"{time},{WORDS[truth]},{WORDS[pred]}{end}" for time, truth, pred in rows]
    with open(path, "a", newline="") as file:
        file.write(("" if file.tell() else f"time,actual,predicted{end}") + "".join(lines))


@pytest.mark.slow
def test_watch_takes_words_and_a_budget_of_time_and_goes_on_with_both(tmp_path):
    """The restart has more rows at another pace to look at; what was learned first stands."""
    stream, path, state = fraud(seed=1, length=60_000, days=3), tmp_path / "log.csv", tmp_path / "state"
    write(path, stream, part=slice(30_000))
    command = (path, "--positive", "fraud", "--budget", "1 per month", "--json", "--no-warnings", "--state", state)
    first = start(*command)
    until(state, 30_000)
    _, _, err = ended(first, signal.SIGTERM)
    assert err.count("classes from the data") == err.count("labels in column 'actual'") == 1
    assert "fraud is the positive one" in err
    assert "so '1 per month' is one false alarm in" in err
    write(path, stream, part=slice(30_000, None))
    second = start(*command)
    until(state, 60_000)
    status, found, err = ended(second, signal.SIGTERM)
    assert status == 0, err
    assert [change["rate"] for change in found[0]["changes"]].count("tpr") == 1
    assert 36_000 <= found[0]["at"] < 40_000


@pytest.mark.slow
def test_a_budget_of_time_is_the_same_in_every_format(fourrates, tmp_path):
    """More rows than a block of CSV holds, at a pace that changes: each format must look at the same rows."""
    stream = fraud(seed=2, length=80_000, days=4)
    write(tmp_path / "plain.csv", stream)
    write(tmp_path / "windows.csv", stream, "\r\n")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + (tmp_path / "plain.csv").read_bytes()))
    table = pa.csv.read_csv(tmp_path / "plain.csv")
    pa.parquet.write_table(table, tmp_path / "table.parquet", row_group_size=10_000)
    told = set()
    for name in ("plain.csv", "windows.csv", "packed.csv.gz", "table.parquet"):
        ran = fourrates("detect", tmp_path / name, "--json")
        (sentence,) = [line for line in ran.err.splitlines() if line.startswith("budget:")]
        told.add((sentence, json.loads(ran.out)["parameters"]["arl"]))
    assert len(told) == 1, told


def test_a_state_keeps_its_budget_of_time(fourrates, tmp_path):
    """Tomorrow's file has another number of events a day; the budget in words is the one the state was begun with."""
    stream = fraud(seed=2, length=20_000, days=2)
    write(tmp_path / "monday.csv", stream, part=slice(0, 8_000))
    write(tmp_path / "tuesday.csv", stream, part=slice(8_000, None))
    state = tmp_path / "state"
    assert fourrates("detect", tmp_path / "monday.csv", "--budget", "one a month", "--state", state).status == 0
    ran = fourrates("detect", tmp_path / "tuesday.csv", "--budget", "1 per month", "--state", state)
    assert ran.status == 0, ran.err
    assert "budget" not in ran.err
    ran = fourrates("detect", tmp_path / "tuesday.csv", "--budget", "5000", "--state", state, "--json")
    assert "budget: one false alarm in 5,000 events; it was one in " in ran.err
    assert json.loads(ran.out)["parameters"]["arl"] == 5000
