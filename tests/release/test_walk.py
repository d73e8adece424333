"""A new user's walk through the README and *Monday morning*, with the wheel that was built and nothing else."""

import ast
import os
import shutil
import subprocess

import pytest

from .test_archives import ROOT, fresh, only

PAGES = ("README.md", "docs/monday.md")


@pytest.mark.skipif("FOURRATES_DIST" not in os.environ, reason="make dist builds what is tested here")
def test_every_command_and_snippet_works_in_a_fresh_environment(tmp_path):
    python = fresh(tmp_path / "venv", f"{only('*.whl').resolve()}[cli,plot,serve]", "pandas")
    pages = [ROOT / page for page in PAGES]
    subprocess.run([python, ROOT / "tests/release/walk.py", *pages], check=True, cwd=tmp_path, timeout=900)


def test_the_unit_is_one_that_systemd_can_read(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    unit = (ROOT / "examples/deploy/fourrates-watch.service").read_text()
    (tmp_path / "fourrates-watch.service").write_text(unit.replace("/opt/fourrates/bin/fourrates", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "fourrates-watch.service"], capture_output=True, text=True, timeout=60
    )
    assert "fourrates-watch" not in done.stderr, done.stderr


def test_the_page_shows_what_stands_in_the_examples():
    page = (ROOT / "docs/monday.md").read_text()
    unit = (ROOT / "examples/deploy/fourrates-watch.service").read_text()
    shown = page.partition("```ini\n")[2].partition("```")[0]
    assert {line.strip() for line in shown.splitlines()} <= {line.strip() for line in unit.splitlines()}
    dag = (ROOT / "examples/deploy/airflow_dag.py").read_text()
    ast.parse(dag)
    shown = page.partition("```text\n@dag")[2].partition("```")[0]
    assert {line.strip() for line in shown.splitlines()[1:]} <= {line.strip() for line in dag.splitlines()}
    nightly = (ROOT / "examples/deploy/nightly.sh").read_text()
    assert "--state" in nightly
    assert "--fail-on drift --fail-on open --fail-on no-events" in nightly
    assert "--fail-on drift --fail-on open --fail-on no-events" in page
