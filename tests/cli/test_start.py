"""What a command imports before it does anything, what is said of words that make no sense, and shell completion."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from fourrates.cli.commands import NAMES

HEAVY = ("jinja2", "matplotlib", "narwhals", "pandas", "polars", "pooch", "rich", "river", "scipy")
IMPORTED = (
    "import sys; from fourrates.cli.app import run; status = run(sys.argv[1:]); print(*sys.modules); sys.exit(status)"
)


def imported(*words):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *map(str, words)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    modules = done.stdout.splitlines()[-1].split()
    return {*modules, *(name.split(".")[0] for name in modules)}


def test_the_version_is_told_without_any_of_the_heavy_libraries():
    assert not imported("--version") & {*HEAVY, "pyarrow"}


@pytest.mark.slow
def test_detect_imports_pyarrow_and_no_other_heavy_library(drifting, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.csv.read_csv(drifting)
    pyarrow.parquet.write_table(table, tmp_path / "drifting.parquet")
    for path in (drifting, tmp_path / "drifting.parquet"):  # both with times, which pyarrow likes to give to pandas
        found = imported("detect", path, "--json", "--bad", "skip", "--threshold", "0.5", "--score", "y_pred")
        assert "pyarrow" in found
        assert not found & set(HEAVY)


@pytest.mark.slow
def test_detect_on_a_file_with_times_starts_without_what_it_does_not_need(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("timestamp,y_true,y_pred\n" + "2026-01-01 00:00:00,1,1\n2026-01-01 00:00:01,0,0\n" * 9)
    found = imported("detect", path)
    assert "pyarrow.csv" in found
    slow = {"pyarrow.compute", "asyncio", "hashlib", "importlib.metadata", "ssl", "statistics", "fourrates.join"}
    itself = subprocess.run(
        [sys.executable, "-c", "import sys, numpy, pyarrow.csv; print(*sys.modules)"], capture_output=True, text=True
    )
    assert not found & {*slow, *HEAVY} - {*itself.stdout.split()}  # NumPy before 2 imports hashlib


def test_watch_imports_no_heavy_library():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, "watch", "-"], input="y_true,y_pred\n1,1\n", capture_output=True, text=True
    )
    assert not {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()} & set(HEAVY)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("detect", "Missing argument"),
        ("detect a.csv --threshold half", "--threshold"),
        ("detect a.csv --bad keep", "'reject', 'skip'"),
        ("detect a.csv --truht y", "--truth"),
        ("expect 900,100,200,800 40", "40"),
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
        examples = ran.out.partition("\n  Examples\n")[2].partition("\n\n")[0].splitlines()
        assert bool(examples) == (name != "demo")
        assert all("fourrates" in line for line in examples), "each on a line of its own"


def test_no_command_is_cut_short_in_the_list_of_all(fourrates):
    listed = fourrates("--help").out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == list(NAMES)
    assert [line for line in listed if line.endswith("...") or not line.endswith(".")] == []


SCRIPT = {"bash": "_fourrates_completion() {", "zsh": "#compdef fourrates", "fish": "function _fourrates_completion"}
TYPED = {
    "bash": {"COMP_WORDS": "fourrates de", "COMP_CWORD": "1"},
    "zsh": {"COMP_WORDS": "fourrates de", "COMP_CWORD": "1"},
    "fish": {"COMP_WORDS": "fourrates de", "COMP_CWORD": "de"},
}


def asked_by_a_shell(instruction, **variables):
    done = subprocess.run(
        [sys.executable, "-m", "fourrates"],
        env={**os.environ, "_FOURRATES_COMPLETE": instruction, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("shell", TYPED)
def test_a_shell_completes_commands_and_options(shell):
    words = re.findall(r"\bde\w+", asked_by_a_shell(f"{shell}_complete", **TYPED[shell]))
    assert {"detect", "demo"} <= set(words)
    option = {"COMP_WORDS": "fourrates detect a.csv --fail", "COMP_CWORD": "--fail" if shell == "fish" else "3"}
    assert "--fail-on" in asked_by_a_shell(f"{shell}_complete", **option)


@pytest.mark.parametrize("shell", SCRIPT)
def test_the_script_of_a_shell_is_one_that_it_can_read(shell, tmp_path):
    path = tmp_path / "script"
    path.write_text(asked_by_a_shell(f"{shell}_source"))
    assert SCRIPT[shell] in path.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
