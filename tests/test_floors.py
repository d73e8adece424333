"""The lowest versions that are allowed can be read off by `make floors`, which tries them."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_everything_that_is_needed_names_its_lowest_version(extra):
    call = [sys.executable, ROOT / ".ci" / "floors.py", extra]
    lines = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\d.]+", line)] == []
    named = {re.split(r"[\[>;]", one)[0] for one in PROJECT["optional-dependencies"][extra]} - {PROJECT["name"]}
    assert named <= {line.split("==")[0] for line in lines}
