"""Names from the data may be anything, and are shown as they are: in tables, JSON, CSV, errors and commands."""

import csv
import json
import os
import shlex
import subprocess
import sys

import pytest

from fourrates.escaping import defused, printable

ESCAPES = ["\x1b[31mred\x1b[0m", "\x9b31m", "\x1b]0;title\x07", "back\x08space", "line\nfeed\rreturn", "\u202eturned"]
MARKUP = ["[/x]", "[bold red]no[/bold red]", "[link=https://example.org]", r"$\frac$", "[red]"]


def file_with(path, name, label="b"):
    """A stream of this name that drifts; its positive label is given."""
    rows = [("a", "a"), (label, label)] * 300 + [(label, "a")] * 60
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "y_true", "y_pred"])
        writer.writerows((name, *row) for row in rows)
    return path


def harmless(text):
    return all(one == "\n" or one == printable(one) for one in text)


@pytest.mark.parametrize("name", [*MARKUP, *ESCAPES])
def test_a_table_shows_a_name_as_it_is(fourrates, tmp_path, name):
    path = file_with(tmp_path / "x.csv", name, "no[/b]\x1b[1m")
    for detector in ("FourRates", "LFR"):
        ran = fourrates("detect", path, "--by", "model", "--classes", "a,no[/b]\x1b[1m,c", "-d", detector)
        assert ran.status == 0, ran.err
        assert harmless(ran.out + ran.err)
        assert printable(name)[:12] in ran.out
        assert r"recall:no[/b]\x1b[1m" in ran.out


@pytest.mark.parametrize("detector", ["LFR", "DDM", "EDDM", "DDMOCI", "NFR", "PerfSim", "ThreeMeasures"])
def test_the_table_of_every_detector_is_printed(fourrates, drifting, detector):
    assert fourrates("detect", drifting, "-d", detector).status == 0


@pytest.mark.parametrize("name", [*MARKUP, *ESCAPES])
def test_json_holds_the_name_and_no_escape_sequence(fourrates, tmp_path, name):
    ran = fourrates("detect", file_with(tmp_path / "x.csv", name), "--by", "model", "--classes", "a,b", "--json")
    assert harmless(ran.out)
    assert json.loads(ran.out)["findings"][0]["segment"] == name


@pytest.mark.parametrize("name", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\ta", "\rb", '=HYPERLINK("x")'])
def test_a_spreadsheet_runs_nothing_of_the_csv(fourrates, tmp_path, name):
    path = file_with(tmp_path / "x.csv", name)
    ran = fourrates("detect", path, "--by", "model", "--classes", "a,b", "--csv", tmp_path / "out.csv")
    assert ran.status == 0, ran.err
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        assert row["segment"] == f"'{name}"
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in row.values())


@pytest.mark.parametrize("name", ["a;=1+1;b", "a\t@SUM(A1)", "a\n=1+1", ";+1;-1", "\N{FULLWIDTH EQUALS SIGN}1", "\t=1"])
def test_nor_does_one_that_ends_its_cells_elsewhere(fourrates, tmp_path, name):
    path = file_with(tmp_path / "x.csv", name)
    ran = fourrates("detect", path, "--by", "model", "--classes", "a,b", "--csv", tmp_path / "out.csv")
    assert ran.status == 0, ran.err
    written = (tmp_path / "out.csv").read_text()
    assert "'" in written
    for end in (",", ";", "\t", "\n"):
        for cell in written.replace("\r", "\n").replace("\n", end).replace('"', "").split(end):
            assert not cell.startswith(("=", "+", "@", "\N{FULLWIDTH EQUALS SIGN}"))


def test_numbers_stay_numbers_in_the_csv():
    assert [defused(cell) for cell in ("-5", "+1.5e-3", "0", "a-b")] == ["-5", "+1.5e-3", "0", "a-b"]


@pytest.mark.parametrize("label", ["two words", "it's", "$(reboot)", "a;b", '"'])
def test_a_command_that_is_suggested_is_quoted_for_the_shell(fourrates, tmp_path, label):
    path = file_with(tmp_path / "x.csv", "m", label)
    ran = fourrates("detect", path, "--classes", "0,1")
    assert ran.status == 2
    hint = ran.err.strip().rpartition("if these are the labels: ")[2]
    option, labels = shlex.split(hint)
    assert option == "--classes"
    assert sorted(labels.split(",")) == sorted(["a", label])
    assert fourrates("detect", path, *shlex.split(hint)).status == 0


def test_what_cannot_be_suggested_is_not(fourrates, tmp_path):
    for label in ("a,b", "\x1b[2J"):
        ran = fourrates("detect", file_with(tmp_path / "x.csv", "m", label), "--classes", "0,1")
        assert ran.status == 2
        assert "if these are the labels" not in ran.err
        assert harmless(ran.err)


def test_labels_taken_from_the_data_are_told_harmlessly(fourrates, tmp_path):
    ran = fourrates("detect", file_with(tmp_path / "x.csv", "m", "\x1b[2J"))
    assert ran.status == 0
    assert r"classes from the data: \x1b[2J, a; a is the positive one" in ran.err
    assert harmless(ran.err)
    assert harmless(ran.out)


def test_an_error_shows_the_name_of_a_file_or_column_as_it_is(fourrates, tmp_path):
    path = tmp_path / "\x1b[2J[bold].csv"
    ran = fourrates("detect", path)
    assert ran.status == 2
    assert r"\x1b[2J[bold].csv: no file matches" in ran.err
    path.write_text("\x1b[31mone,two\n1,1\n")
    ran = fourrates("detect", path)
    assert ran.status == 2
    assert harmless(ran.err)
    assert r"\x1b[31mone" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["csv", "jsonl"])
def test_a_row_means_the_same_in_detect_and_in_watch(fourrates, tmp_path, shape):
    pairs = [(1, 1), (0, 0)] * 300 + [(1, 0)] * 60
    lines = [f"{a},{b}\n" if shape == "csv" else f'{{"y_true": {a}, "y_pred": {b}}}\n' for a, b in pairs]
    text = ("y_true,y_pred\n" if shape == "csv" else "") + "".join(lines[:10]) + "\n" + "".join(lines[10:])
    path = tmp_path / f"x.{shape}"
    path.write_text(text)
    found = json.loads(fourrates("detect", path, "--json").out)["findings"]
    watched = [json.loads(line) for line in fourrates("watch", "-", "--no-warnings", input=text).out.splitlines()]
    found = [one for one in found if one["kind"] != "shift"]
    assert [one["kind"] for one in found] == ["drift", "confirmation"]
    assert [one["row"] for one in found] == [one["row"] for one in watched] == [one["at"] + 1 for one in found]
    fourrates("detect", path, "--csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        assert {int(row["row"]) for row in csv.DictReader(file)} == {one["row"] for one in found}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="names of files are text here")
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_name_that_is_no_text_and_an_output_that_holds_little(tmp_path, encoding):
    source = file_with(tmp_path / "x.csv", "caf\u00e9 \u2192")
    path = os.path.join(os.fsencode(tmp_path), b"\xff.csv")
    os.rename(source, path)
    base = [sys.executable, "-m", "fourrates", "detect", path, "--by", "model", "--classes", "a,b"]
    outputs = {name: tmp_path / name for name in ("csv", "report", "plot.png", "state")}
    options = [word for name, file in outputs.items() for word in (f"--{name.split('.')[0]}", file)]
    for more in ([], ["--json"], options):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run([*base, *more], capture_output=True, env=environment, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
    assert all(file.exists() for file in outputs.values())
    assert b"\xff.csv" in outputs["csv"].read_bytes()
