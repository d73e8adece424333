"""The unit and the container file start the service with options that it has."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

pytest.importorskip("starlette")
from fourrates.cli.serve import AWAY, serve
from fourrates.serve.access import FORWARDED

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"


def options_of(words):
    return {word for word in words if word.startswith("--")}


def test_the_unit_and_the_container_use_options_that_there_are():
    known = {name for parameter in serve.params if isinstance(parameter, click.Option) for name in parameter.opts}
    unit = (DEPLOY / "fourrates-serve.service").read_text()
    container = (DEPLOY / "Containerfile.serve").read_text()
    started = shlex.split(re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1])
    assert started[1] == "serve"
    assert "--require-token" in started
    command = re.search(r"^CMD \[(.*)\]$", container, re.MULTILINE)[1]
    assert options_of(started) | options_of(shlex.split(command.replace(",", " "))) <= known
    assert "Untested" in container


def test_variables_of_the_unit_and_the_container_are_read():
    names = {parameter.envvar for parameter in serve.params}
    assert "FOURRATES_SERVE_DATA" in names
    assert "FOURRATES_SERVE_DATA=/data" in (DEPLOY / "Containerfile.serve").read_text()


def test_a_server_loads_neither_kafka_nor_the_report_without_need(tmp_path):
    """Each would be in its memory for as long as it runs."""
    program = (
        "import sys; from pathlib import Path; "
        "from fourrates.serve.app import Service; from fourrates.serve.settings import Settings; "
        "Service(Settings(data=Path(sys.argv[1]))); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "data"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "fourrates.serve.writer" in loaded
    assert not loaded & {"jinja2", "fourrates.report", "fourrates.engines.kafka", "confluent_kafka", "pyarrow"}


def test_a_proxy_set_up_as_the_guide_says_is_noticed_where_no_token_is_required():
    guide = (DEPLOY.parents[1] / "docs" / "serve.md").read_text()
    marked = {name.lower().encode() for name in re.findall(r"proxy_set_header (\S+)", guide)}
    assert marked & set(FORWARDED)


def test_the_unit_starts_a_server_again_whose_database_is_away():
    unit = (DEPLOY / "fourrates-serve.service").read_text()
    assert str(AWAY) not in re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)[1].split()
    assert "Restart=on-failure" in unit
