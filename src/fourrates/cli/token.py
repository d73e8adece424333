"""``fourrates token``: make, list and revoke the tokens of a server."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import SETTINGS, argument, command, help_of, option
from fourrates.io import InputError

if TYPE_CHECKING:
    from fourrates.serve.tokens import Token, Tokens

data = option(
    "--data",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("fourrates-data"),
    envvar="FOURRATES_SERVE_DATA",
    help="The folder of the server.",
)


@click.group(context_settings=SETTINGS)
def token() -> None:
    """Make, list and revoke the tokens that a server asks for.

    Changes take effect within a second.

    Examples
    --------
      fourrates token create "card service" --scope ingest --monitor fraud
      fourrates token list
      fourrates token revoke 8f14e45fceea
    """


token.help = help_of(token)


@command
@argument("name", metavar="NAME", help="Whose it is, for people.")
@option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["ingest", "read", "admin"]),
    help="What it is good for: sending events, looking, or everything. May be repeated.",
)
@option("--monitor", "monitors", metavar="NAME", multiple=True, help="Only for this monitor. May be repeated.")
@option("--days", type=click.FloatRange(0, 36_500, min_open=True), help="Expires after this number of days.")
@data
def create(name: str, scopes: tuple[str, ...], monitors: tuple[str, ...], days: float | None, data: Path) -> None:
    """Make a token and print it. It is shown this once; the server keeps a digest of it.

    Examples
    --------
      fourrates token create "card service" --scope ingest --monitor fraud
      fourrates token create board --scope read --days 90
    """
    expires = None if days is None else time.time() + days * 86_400.0
    try:
        text, made = _tokens(data).create(name, list(scopes), monitors, expires)  # type: ignore[arg-type]
    except ValueError as error:
        raise InputError(str(error)) from None
    print(text)
    opt.say(f"token {made.id} for {', '.join(made.scopes)}; it is not shown again")


@command
@data
@opt.json
def list_tokens(data: Path, json: bool) -> None:
    """List the tokens there are.

    Examples
    --------
      fourrates token list --data /var/lib/fourrates
    """
    found = [_facts(one) for one in _tokens(data).all()]
    if json:
        print(output.as_json({"tokens": found}))
        return
    table = output.grid()
    for heading in ("id", "name", "scopes", "monitors", "created", "expires"):
        table.add_column(heading)
    for facts in found:
        monitors = ", ".join(facts["monitors"]) or "all"
        row = (facts["id"], facts["name"], ", ".join(facts["scopes"]), monitors, facts["created"], facts["expires"])
        table.add_row(*(output.literal(str(cell or "never")) for cell in row))
    output.console().print(table)


@command
@argument("id", metavar="ID", help="As `token list` has it.")
@data
def revoke(id: str, data: Path) -> None:
    """Revoke a token: a running server refuses it within a second.

    Examples
    --------
      fourrates token revoke 8f14e45fceea
    """
    if not _tokens(data).revoke(id):
        raise InputError(f"there is no token {id!r} in {data}")
    opt.say(f"token {id} is revoked")


token.add_command(create, "create")
token.add_command(list_tokens, "list")
token.add_command(revoke, "revoke")


def _tokens(data: Path) -> Tokens:
    from fourrates.serve.tokens import Tokens

    return Tokens(data)


def _facts(one: Token) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "scopes": list(one.scopes),
        "monitors": list(one.monitors),
        "created": _when(one.created),
        "expires": None if one.expires is None else _when(one.expires),
    }


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
