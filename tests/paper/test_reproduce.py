"""`python -m paper`, as a person runs it: a small run of everything, and what may go wrong."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from paper import datasets
from paper.__main__ import main
from paper.catalogue import ITEMS, choose
from paper.public import Public
from paper.synthetic import Synthetic

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

DATA = os.environ.get("FOURRATES_DATA")
here = pytest.mark.skipif(not DATA, reason="FOURRATES_DATA names no folder with the public data sets")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def refused(ran):
    """Whether a run ended as bad input should: status 2, nothing printed, one line of what is wrong."""
    return ran.exit_code == 2 and ran.stdout == "" and ran.stderr.splitlines()[-1].startswith("Error: ")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Everything there is, made of two short runs; without data, everything that needs none."""
    folder = tmp_path_factory.mktemp("paper")
    words = ["--quick", "--runs", 2, "--out", folder] + ([] if DATA else ["--only", "synthetic"])
    ran = run(*words, "--jobs", 1)
    assert ran.exit_code == 0, ran.stderr
    return folder, words, ran.stdout


def _made():
    return choose([] if DATA else ["synthetic"], quick=True).items


def test_a_small_run_makes_every_table_and_figure(small):
    folder, _, out = small
    made = _made()
    assert len(made) == (len(ITEMS) if DATA else 16)
    page = (folder / "index.html").read_text()
    for item in made:
        assert f'<section id="{item.name}">' in page
        assert (folder / "numbers" / f"{item.name}.csv").stat().st_size > 0
        drawn = item.name.startswith(("figure", "histogram"))
        assert (folder / "figures" / f"{item.name}.svg").exists() == drawn
        assert (folder / "figures" / f"{item.name}.png").exists() == drawn
        assert (item.title in out) != drawn


def test_the_page_has_nothing_to_fetch(small):
    folder, _, _ = small
    page = (folder / "index.html").read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//""", page)
    assert not re.search(r"""url\(\s*["']?(?:https?:)?//|@import|<script""", page)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in re.findall(r'src="([^"]*)', page))
    for link in re.findall(r'href="([^#"][^"]*)"', page):
        assert (folder / link).exists()


def test_the_numbers_are_the_same_in_JSON_and_CSV(small):
    folder, _, _ = small
    items = json.loads((folder / "numbers.json").read_text())["items"]
    assert set(items) == {item.name for item in _made()}
    for name, item in items.items():
        rows = list(csv.DictReader(io.StringIO((folder / "numbers" / f"{name}.csv").read_text())))
        assert len(rows) == len(item["records"])
        for row, record in zip(rows, item["records"], strict=True):
            for key, value in record.items():
                text = " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
                assert row[key] == text


def test_every_cell_beside_the_papers_has_its_sentence(small):
    folder, _, _ = small
    items = json.loads((folder / "numbers.json").read_text())["items"]
    for name in ("table2", "table3", "table4"):
        for record in items[name]["records"]:
            assert record["sentence"].endswith(".")
    for record in items["table2"]["records"]:
        if record["paper"] is not None:
            assert f"{record['ours']:.0f} hits against {record['paper']}" in record["sentence"]


def test_a_second_run_does_no_work_and_finds_the_same(small, monkeypatch):
    folder, words, _ = small
    before = json.loads((folder / "numbers.json").read_text())["items"]

    def fail(*_):
        raise AssertionError("a finished run is made again")

    monkeypatch.setattr(Synthetic, "run", fail)
    monkeypatch.setattr(Public, "run", fail)
    names = ["table2", "table3", "histogram-imbalance2"]
    ran = run(*words, "--jobs", 1, "--json", *(word for name in names for word in ("--only", name)))
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["items"] == {name: before[name] for name in names}


def test_only_what_is_asked_for_is_made(tmp_path):
    ran = run("--only", "table4", "--only", "figure1", "--out", tmp_path, "--json")
    assert ran.exit_code == 0
    assert set(json.loads(ran.stdout)["items"]) == {"table4", "figure1"}
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["figure1.png", "figure1.svg"]


def test_another_seed_gives_other_numbers(tmp_path):
    def records(seed):
        words = ("--only", "table3", "--only", "synthetic", "--runs", 20, "--jobs", 1, "--out", tmp_path, "--json")
        ran = run(*words, "--seed", seed)
        return json.loads(ran.stdout)["items"]["table3"]["records"]

    assert records(0) != records(1000)


def test_missing_data_is_named_with_its_place_before_any_work(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no way out")

    monkeypatch.delenv("FOURRATES_DATA", raising=False)
    monkeypatch.setenv("FOURRATES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "_fetched", fail)
    ran = run("--only", "table1", "--data", tmp_path / "data", "--out", tmp_path / "out")
    assert refused(ran)
    assert ran.stderr.count("\n") == 1
    for file in ("usenet1.arff", "usenet2.arff", "sea.arff", "hyperplane9.arff"):
        assert file in ran.stderr
    assert str(tmp_path / "data") in ran.stderr
    assert "--only synthetic" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_what_needs_no_data_is_made_without(tmp_path, monkeypatch):
    monkeypatch.delenv("FOURRATES_DATA", raising=False)
    monkeypatch.setenv("FOURRATES_CACHE", str(tmp_path / "cache"))
    ran = run("--only", "table5", "--out", tmp_path / "out")
    assert ran.exit_code == 0
    assert "1e-05" in ran.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "table9"], "table9"),
        (["--only", "table1", "--only", "synthetic"], "nothing is left"),
        (["--runs", "0"], "--runs"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_what_cannot_be_made_is_refused(tmp_path, words, said):
    ran = run(*words, "--out", tmp_path / "out")
    assert refused(ran)
    assert said in ran.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    assert refused(run("--only", "table4", "--out", tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "mine"


def test_an_interrupt_keeps_what_is_finished_and_the_next_run_resumes(tmp_path):
    words = ["--only", "table2", "--only", "synthetic", "--runs", "150", "--jobs", "2", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "paper", *words]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **piped) as process:
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and not list(tmp_path.glob("results/*.jsonl")):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "the same command resumes there" in err.splitlines()[-1]
    kept = {path: path.read_bytes() for path in tmp_path.glob("results/*.jsonl")}
    assert kept
    assert not (tmp_path / "index.html").exists()
    assert run(*words[:-4], "--jobs", "1", "--out", tmp_path).exit_code == 0
    for path, content in kept.items():
        assert path.read_bytes().startswith(content)
        runs = [json.loads(line)["run"] for line in path.read_text().splitlines()]
        assert sorted(runs) == list(range(150))


@here
def test_the_figures_of_the_public_data_show_both_machines(small):
    folder, _, _ = small
    rows = csv.DictReader(io.StringIO((folder / "numbers" / "figure10.csv").read_text()))
    experiments = {row["experiment"] for row in rows}
    assert experiments == {"USENET1, no weights", "USENET1, weights 100 : 1"}


def test_every_item_says_what_it_is():
    assert len({item.name for item in ITEMS}) == len(ITEMS)
    assert [item.title.split(":")[0] for item in ITEMS[:5]] == [f"Table {n}" for n in ("I", "II", "III", "IV", "V")]
