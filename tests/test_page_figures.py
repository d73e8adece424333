"""Figures on the pages are those that the benchmarks wrote: ``make figures`` fills them in."""

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

cogapp = pytest.importorskip("cogapp", reason="cogapp is not installed")

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs/_site"
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "[[[cog" in page.read_text()]


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    import figures

    yield figures
    sys.modules.pop("figures")


def filled(text, figures):
    made = cogapp.Cog()
    made.options.prologue = "import cog, figures"
    with redirect_stdout(io.StringIO()):
        return made.process_string(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_shows_the_numbers_of_its_benchmarks(page, figures):
    assert filled(page.read_text(), figures) == page.read_text(), f"{page.name} is older than its numbers: make figures"


def test_a_page_that_is_older_than_its_numbers_is_noticed(figures, monkeypatch):
    page = (ROOT / "docs/evidence.md").read_text()
    read = figures.results
    numbers = [{**one, "ratio": one["ratio"] + 0.1} for one in read("budget")]
    monkeypatch.setattr(figures, "results", lambda name: numbers if name == "budget" else read(name))
    assert filled(page, figures) != page


@pytest.mark.slow
def test_the_alarms_on_card_payments_are_those_on_the_page(monkeypatch, figures):
    pytest.importorskip("river")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from payments import alarms

    assert dict(alarms()) == figures.results("payments")
