"""Every block of code on the pages is run: examples with >>> as doctests, by pytest itself; all others here."""

import contextlib
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import fourrates as fr
from fourrates.budget import falls
from fourrates.cli import app
from fourrates.retrain import Retrainer
from fourrates.streams import SCENARIOS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    (f"{page.relative_to(ROOT).as_posix()}:{page.read_text()[: match.start()].count(chr(10)) + 1}", *match.groups())
    for page in PAGES
    for match in FENCE.finditer(page.read_text())
]
ELSEWHERE = {"demo", "watch", "serve", "token"}  # tests/cli and tests/serve run these: they take a while, or do not end
GUIDE = "docs/serve.md"  # tests/serve/test_guide.py runs it against a server


def blocks(language):
    found = [(where, text) for where, kind, text in BLOCKS if kind == language and not where.startswith(GUIDE)]
    return pytest.mark.parametrize(("where", "text"), found, ids=[where for where, _ in found])


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_to_files_lead_to_files(name):
    """Within the site ``make docs`` follows them."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text())
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_every_block_says_what_it_is():
    kinds = {kind for _, kind, _ in BLOCKS if not kind.startswith("{")}
    assert kinds <= {"python", "bash", "text", "ini"}


@pytest.fixture
def names():
    """What stands for the reader's own data in blocks that are not examples by themselves."""
    river = pytest.importorskip("river.datasets", reason="river is not installed")
    examples, labels = zip(*river.Phishing().take(400), strict=True)
    return {
        "stream": list(zip(*SCENARIOS["Imbalance2"].stream(seed=1), strict=True)),
        "retrain_on": len,
        "fr": fr,
        "Retrainer": Retrainer,
        "first_examples": examples[:200],
        "first_labels": labels[:200],
        "examples": examples[200:],
        "labels": labels[200:],
    }


@pytest.mark.slow
@blocks("python")
def test_python(where, text, names, folder):
    if ">>>" in text:
        return  # a doctest
    if "load(" in text and "FOURRATES_DATA" not in os.environ:
        pytest.skip("needs the public data sets; FOURRATES_DATA names no folder with them")
    exec(compile(text, where, "exec"), names)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files by the names that the pages use: those of the walk, and some more."""
    sys.path.insert(0, str(ROOT / "tests/release"))
    import walk

    sys.path.pop(0)
    folder = tmp_path_factory.mktemp("files")
    with contextlib.chdir(folder):
        walk.make_files()
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    rows = [f"{truth},{pred}\n" for truth, pred in zip(y_true, y_pred, strict=True)]
    for name, part in (("predictions", rows), ("monday", rows[:5_000]), ("tuesday", rows[5_000:])):
        (folder / f"{name}.csv").write_text("y_true,y_pred\n" + "".join(part))
    return folder


@pytest.fixture
def folder(tmp_path, files, monkeypatch):
    """A copy of the files, to work in."""
    shutil.copytree(files, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")


@pytest.mark.slow
@blocks("bash")
def test_commands(where, text, folder, capsys, monkeypatch):
    monkeypatch.setattr(falls, "STREAMS", falls.FEWEST)  # how soon a fall is found is not looked at here
    for line in filter(None, text.splitlines()):
        program, *words = shlex.split(line, comments=True)
        if "river." in line:
            pytest.importorskip("river", reason="river is not installed")
        if program == "fourrates" and words[0] not in ELSEWHERE:
            allowed = {0, 1} if "--fail-on" in words else {0}
            assert app.run(words) in allowed, f"{where}: {line}\n{capsys.readouterr().err}"
        else:
            assert program in ("pip", "make", "fourrates"), f"{where}: {line}"


def test_a_decision_is_one_page():
    pages = [*(ROOT / "docs" / "decisions").glob("*.md")]
    assert pages
    assert [page.name for page in pages if len(page.read_text().split()) > 200] == []
