"""Every command and every option stands in the docs."""

from pathlib import Path

import click
import pytest

from fourrates.cli.app import app

DOCS = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()
COMMANDS = {name: app.get_command(click.Context(app), name) for name in app.list_commands(click.Context(app))}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section(name):
    assert f"\n## {name}\n" in DOCS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_told(name):
    sections = DOCS.split("\n## ")
    shared = next(section for section in sections if section.startswith("detect"))
    own = next(section for section in sections if section.startswith(name)) + sections[-1]
    if name == "watch":  # which has the options of the data by reference to detect
        own += shared
    for parameter in COMMANDS[name].params:
        for option in [word for word in (*parameter.opts, *parameter.secondary_opts) if word.startswith("--")]:
            assert f"`{option}" in own, f"{name} {option}"


def test_every_option_of_all_commands_together_is_told():
    for parameter in app.params:
        assert any(f"`{option}" in DOCS for option in parameter.opts), parameter.opts
