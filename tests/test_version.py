"""The version stands in one place, and the installed package knows it."""

import importlib.metadata
import tomllib
from pathlib import Path

import fourrates as fr


def test_the_version_comes_from_the_package_alone():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert importlib.metadata.version("fourrates") == fr.__version__
