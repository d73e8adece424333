"""What ``make dist`` made: the source archive, the wheel, and the wheel in a fresh environment."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIST = os.environ.get("FOURRATES_DIST")
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/fourrates/__init__.py").read_text(), re.MULTILINE)[1]

pytestmark = pytest.mark.skipif(DIST is None, reason="make dist builds what is tested here")


def only(pattern):
    (found,) = Path(DIST).glob(pattern)
    return found


@pytest.fixture(scope="module")
def source():
    """The names in the source archive, below its top folder."""
    with tarfile.open(only("*.tar.gz")) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def wheel():
    with zipfile.ZipFile(only("*.whl")) as archive:
        yield archive


def ours():
    """Every file of the package that was written, by its path below src."""
    made = (".c", ".h", ".so", ".pyd", ".pyc")
    files = (path for path in (ROOT / "src/fourrates").rglob("*") if path.is_file() and path.suffix not in made)
    return {path.relative_to(ROOT / "src").as_posix() for path in files}


def test_the_source_archive_holds_every_file_of_the_package(source):
    assert {f"src/{name}" for name in ours()} <= source


def test_the_source_archive_holds_what_the_build_and_the_tests_need(source):
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "Makefile", "tests/conftest.py"} <= source
    assert {"CHANGELOG.md", "CITATION.cff", "SECURITY.md", "docs/mathematics.md", "examples/pipe.sh"} <= source


def test_the_source_archive_holds_nothing_that_was_made_from_something_else(source):
    assert not [name for name in source if name.endswith((".c", ".so", ".pyd", ".pyc"))]


def test_the_wheel_carries_every_file_of_the_package(wheel):
    names = {*wheel.namelist()}
    assert ours() <= names
    assert {"fourrates/py.typed", "fourrates/report/page.html", "fourrates/report/vendor/uPlot.iife.min.js"} <= names


def test_the_wheel_carries_the_compiled_modules_and_no_c(wheel):
    names = wheel.namelist()
    assert not [name for name in names if name.endswith((".c", ".h"))]
    for module in (path.stem for path in (ROOT / "src/fourrates/kernel").glob("*.pyx")):
        assert [name for name in names if re.fullmatch(rf"fourrates/kernel/{module}\..*\.(so|pyd)", name)], module


def test_the_wheel_carries_no_tests(wheel):
    assert {name.split("/")[0].split("-")[0] for name in wheel.namelist()} == {"fourrates"}


def test_the_version_is_the_one_of_the_package_everywhere(wheel):
    (metadata,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    told = Parser().parsestr(wheel.read(metadata).decode())
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("fourrates", VERSION, "BSD-3-Clause")
    assert only("*.tar.gz").name == f"fourrates-{VERSION}.tar.gz"


def test_the_wheel_is_small():
    assert only("*.whl").stat().st_size < 6 * 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no distributions")
def test_the_wheel_is_for_every_linux_of_the_last_ten_years():
    assert "manylinux_2_17" in only("*.whl").name


def test_the_metadata_lacks_an_address_and_nothing_else():
    """There is none to give yet; everything else that pyroma looks at is there."""
    rated = subprocess.run(
        [sys.executable, "-m", "pyroma", only("*.tar.gz")], capture_output=True, text=True, env=os.environ
    ).stdout
    said = [line for line in rated.splitlines() if line and not line.startswith(("-", "Checking", "Found", "Getting"))]
    mails, address, *rating = said
    assert mails == "Your package does not have author-email data."
    assert address.startswith("Your package should have a 'url' field with a link to the project home page")
    assert rating[0] == "Final rating: 8/10"


def fresh(folder, *requirements):
    """The Python of a new environment with these installed, without a compiler."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    bare = os.environ | {"PATH": str(python.parent), "CC": "no-compiler-here", "CXX": "no-compiler-here"}
    subprocess.run([*install, *requirements], check=True, cwd=folder, env=bare)
    return python


def test_the_wheel_works_in_a_fresh_environment_and_leaves_nothing_behind(tmp_path):
    python = fresh(tmp_path / "venv", f"{only('*.whl').resolve()}[cli]")
    subprocess.run([python, ROOT / "tests/release/smoke.py"], check=True, cwd=tmp_path)
    script = next(python.parent.glob("fourrates*"))
    told = subprocess.run([script, "--version"], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert told.stdout.strip() == f"fourrates {VERSION}"
    subprocess.run([script, "demo", "demo"], check=True, capture_output=True, cwd=tmp_path)
    assert (tmp_path / "demo/report.html").stat().st_size > 10_000
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "fourrates"], check=True, cwd=tmp_path)
    assert not list((tmp_path / "venv").rglob("*fourrates*"))


def test_the_core_needs_numpy_alone_and_the_command_line_says_what_it_lacks(tmp_path):
    python = fresh(tmp_path / "venv", str(only("*.whl").resolve()))
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    )
    assert {line.split("==")[0] for line in listed.stdout.split()} <= {"fourrates", "numpy", "pip", "setuptools"}
    subprocess.run([python, "-c", "import fourrates as fr; fr.LFR().update(1, 1)"], check=True, cwd=tmp_path)
    told = subprocess.run([python, "-m", "fourrates"], capture_output=True, text=True, cwd=tmp_path)
    assert told.returncode == 2
    hint = "pip install 'fourrates[cli]', or '.[cli]' in a checkout"
    assert told.stderr == f"fourrates: the command line needs click: {hint}\n"
