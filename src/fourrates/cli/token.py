"""``fourrates token``: make, list and revoke the tokens of a server."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import SETTINGS, argument, command, help_of, option
from fourrates.cli.errors import checked
from fourrates.io import InputError

if TYPE_CHECKING:
    from fourrates.serve.tokens import Tokens

SHOWN = ("id", "name", "scopes", "monitors", "created", "expires")


@click.group(context_settings=SETTINGS)
def token() -> None:
    """Create, list and revoke the tokens of a server.

    Changes take effect within a second.

    Examples
    --------
      fourrates token create "card service" --scope ingest --monitor fraud
      fourrates token list
      fourrates token revoke 8f14e45fceea
    """


token.help = help_of(token)


@command
@argument("name", metavar="NAME", help="Name of whoever uses it, for people.")
@option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["ingest", "read", "admin"]),
    help="Allow sending events, looking, or everything. May be repeated.",
)
@option("--monitor", "monitors", metavar="NAME", multiple=True, help="Only for this monitor. May be repeated.")
@option("--days", type=click.FloatRange(0, 36_500, min_open=True), help="Expires after this number of days.")
@opt.folder
def create(name: str, scopes: tuple[str, ...], monitors: tuple[str, ...], days: float | None, data: Path) -> None:
    """Make a token and print it. It is shown this once; the server keeps a digest of it."""
    expires = None if days is None else time.time() + days * 86_400.0
    with checked():
        text, made = _tokens(data).create(name, list(scopes), monitors, expires)  # type: ignore[arg-type]
    print(text)
    opt.say(f"token {made.id} for {', '.join(made.scopes)}; it is not shown again")


@command
@opt.folder
@opt.json
def list_tokens(data: Path, json: bool) -> None:
    """List all tokens."""
    rows = [{name: getattr(token, name) for name in SHOWN} for token in _tokens(data).all()]
    for facts in rows:
        facts |= {name: facts[name] and _when(facts[name]) for name in ("created", "expires")}
    if json:
        print(output.as_json({"tokens": rows}))
        return
    table = output.grid()
    for name in SHOWN:
        table.add_column(name)
    for facts in rows:
        cells = (", ".join(cell) or "all" if isinstance(cell, tuple) else cell or "never" for cell in facts.values())
        table.add_row(*map(output.literal, cells))
    output.console().print(table)


@command
@argument("id", metavar="ID", help="As `token list` prints it.")
@opt.folder
def revoke(id: str, data: Path) -> None:
    """Revoke a token. A running server refuses it within a second."""
    if not _tokens(data).revoke(id):
        raise InputError(f"there is no token {id!r} in {data}")
    opt.say(f"token {id} is revoked")


token.add_command(create, "create")
token.add_command(list_tokens, "list")
token.add_command(revoke, "revoke")


def _tokens(data: Path) -> Tokens:
    from fourrates.serve.tokens import Tokens

    return Tokens(data)


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
