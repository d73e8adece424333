"""What a command imports before it does anything, and that reading words without pydantic changes nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperCommand

from fourrates.cli.commands import NAMES, command

HEAVY = ("matplotlib", "narwhals", "pandas", "polars", "pooch", "pydantic", "rich", "river", "scipy")
IMPORTED = (
    "import sys; from fourrates.cli.app import run; status = run(sys.argv[1:]); print(*sys.modules); sys.exit(status)"
)


def imported(*words):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *map(str, words)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_the_version_is_told_without_any_of_the_heavy_libraries():
    assert not imported("--version") & {*HEAVY, "pyarrow"}


def test_detect_imports_pyarrow_and_no_other_heavy_library(drifting, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.csv.read_csv(drifting)
    pyarrow.parquet.write_table(table, tmp_path / "drifting.parquet")
    for path in (drifting, tmp_path / "drifting.parquet"):  # both with times, which pyarrow likes to give to pandas
        found = imported("detect", path, "--json", "--missing", "skip", "--threshold", "0.5", "--score", "y_pred")
        assert "pyarrow" in found
        assert not found & set(HEAVY)


def test_watch_imports_no_heavy_library():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, "watch", "-"], input="y_true,y_pred\n1,1\n", capture_output=True, text=True
    )
    assert not {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()} & set(HEAVY)


def parsed(kind, name, words):
    one = command(name)
    context = one.context_class(one, info_name=name)
    with context:
        kind.parse_args(one, context, list(words))
    return context.params


@pytest.mark.parametrize(
    "words",
    [
        "detect a.csv",
        "detect a.csv b.csv --json --threshold 0.25 --missing refuse --report page.html",
        "detect --truth=y a.csv -d LFR --fail-on drift -- -odd.csv",
        "detect a.csv --truth x --truth y --save state",
        "compare a.csv -d LFR -d DDM",
        "compare a.csv",
        "watch",
        "watch log.csv --no-warnings --exec mail --webhook http://example.org",
        "bounds 50 45 --level 0.1 --level 1e-3 --null plugin",
        "bounds 50 45",
        "design 1e5 --decay 0.9 --decay 0.98 --sides down",
        "datasets",
        "datasets sea usenet1 --folder data",
        "demo",
        "demo somewhere --seed 3",
    ],
)
def test_words_are_read_as_typer_reads_them(words):
    name, *rest = words.split()
    one = command(name)
    ours, typers = parsed(type(one), name, rest), parsed(TyperCommand, name, rest)
    assert type(one)._values(one, one.context_class(one), rest) is not None, "left to Typer"
    assert ours.keys() == typers.keys()
    for key, value in ours.items():
        theirs = Path(typers[key]) if isinstance(value, Path) else typers[key]  # some releases make paths later
        several = isinstance(theirs, list | tuple) or isinstance(value, list | tuple)
        assert (list(value or ()) == list(theirs or ())) if several else (type(value), value) == (type(theirs), theirs)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("detect", "Missing argument"),
        ("detect a.csv --threshold half", "--threshold"),
        ("detect a.csv --missing keep", "'skip', 'refuse'"),
        ("detect a.csv --truht y", "--truth"),
        ("bounds 50 45 40", "40"),
        ("bounds 50 x", "'K'"),
        ("watch a.csv b.csv", "b.csv"),
        ("detct a.csv", "Did you mean 'detect'"),
    ],
)
def test_what_is_wrong_with_the_words_is_said_in_one_line(fourrates, words, said):
    ran = fourrates(*words.split())
    assert ran.status == 2
    assert ran.out == ""
    assert len(ran.err.strip().splitlines()) == 1
    assert said in ran.err


def test_every_command_tells_its_own_help(fourrates):
    for name in NAMES:
        ran = fourrates(name, "--help")
        assert ran.status == 0
        assert f"fourrates {name}" in ran.out


@pytest.mark.parametrize(("typed", "completed"), [("fourrates de", {"detect", "design", "demo"})])
def test_the_shell_completes_commands(typed, completed):
    shell = {"_FOURRATES_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from fourrates.cli.app import run; sys.exit(run([]))"],
        env={**os.environ, **shell},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert set(done.stdout.split()) == completed
