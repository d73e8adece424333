"""``fourrates serve``: run the monitor service."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from pathlib import Path

import click

from fourrates import files
from fourrates.cli import options as opt
from fourrates.cli.commands import SETTINGS, Command, help_of, option, together
from fourrates.cli.errors import checked
from fourrates.io import InputError

AWAY = 75  # exit status if the database is away: EX_TEMPFAIL, so that a supervisor tries again
DATABASE = "PostgreSQL instead of a file in the folder, as in postgresql://user@host/name. Also FOURRATES_DATABASE."


data = together(opt.folder, option("--database", envvar="FOURRATES_DATABASE", metavar="URL", help=DATABASE))


class _Serve(click.Group):
    """A group that is also a command."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        Command.format_options(self, ctx, formatter)  # type: ignore[arg-type]
        self.format_commands(ctx, formatter)


@click.group(cls=_Serve, context_settings=SETTINGS, invoke_without_command=True)
@data
@click.option("--host", default="127.0.0.1", help="The address to listen on; any but loopback needs tokens.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8421, help="0 takes a free one.")
@click.option(
    "--from",
    "topics",
    multiple=True,
    metavar="URL",
    help="Take events from a topic too, as in kafka://broker:9092/topic?monitor=fraud&group=name. May be repeated.",
)
@click.option("--require-token", is_flag=True, help="Ask for tokens on a loopback address too, as behind a proxy.")
@click.pass_context
def serve(
    ctx: click.Context,
    data: Path,
    database: str | None,
    host: str,
    port: int,
    topics: tuple[str, ...],
    require_token: bool,
) -> None:
    """Run the monitor service: HTTP in, a live page, alerts out.

    Rarer settings are environment variables such as FOURRATES_SERVE_PUBLIC_URL, listed in docs/cli.md.

    Examples
    --------
      fourrates serve
      fourrates serve --data /var/lib/fourrates --port 8421
      fourrates serve --database postgresql://fourrates@localhost/fourrates
      fourrates serve --from 'kafka://broker:9092/predictions?monitor=fraud'
    """
    if ctx.invoked_subcommand is not None:
        return
    from fourrates.serve.running import run
    from fourrates.serve.settings import Settings, from_environment
    from fourrates.serve.store.base import StoreAway, StoreError

    try:
        required = True if require_token else None
        own = {"data": data, "host": host, "port": port, "database": database, "topics": topics}
        run(Settings(**own, **from_environment(os.environ), token_required=required))  # type: ignore[arg-type]
    except StoreAway as error:
        click.echo(f"fourrates: the database is away: {error}", err=True)
        ctx.exit(AWAY)
    except StoreError as error:
        raise InputError(str(error)) from None


serve.help = help_of(serve)


@serve.command(context_settings=SETTINGS)
@data
@click.argument("target", type=click.Path(path_type=Path))
def backup(data: Path, database: str | None, target: Path) -> None:
    """Copy all monitors and findings to TARGET, while the server runs.

    Of SQLite it is a database file, to be put in place of fourrates.db; of PostgreSQL a dump for pg_restore. Tokens are
    not in it: copy the folder tokens, or make new ones.
    """
    from fourrates.serve.settings import Settings
    from fourrates.serve.store import open_store
    from fourrates.serve.store.base import StoreError

    logging.basicConfig(level=logging.WARNING)
    settings = Settings(data=data, database=database)
    if database is None and not (data / "fourrates.db").exists():
        raise InputError(f"{data}: no data of a server here")
    if target.exists():
        raise InputError(f"{target}: is there already")
    files.sweep(target.parent, target.name)
    try:
        with checked(StoreError), files.scratch(target, mode=0o600) as file:  # as private as the data
            with closing(open_store(settings, owner=False)) as store:
                store.backup(file.name)
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}") from None
    opt.say(f"{target}: {target.stat().st_size:,} bytes")


@serve.command(context_settings=SETTINGS)
@data
def move(data: Path, database: str | None) -> None:
    """Move all monitors from the folder to PostgreSQL, while no server runs.

    The file in the folder becomes fourrates.db.moved. Start the server with the same --database afterwards.
    """
    from fourrates.serve.settings import Settings
    from fourrates.serve.store import open_store
    from fourrates.serve.store.base import StoreError

    if database is None:
        raise InputError("move: where to? Give --database")
    path = data / "fourrates.db"
    if not path.exists():
        raise InputError(f"{data}: no data of a server here")
    with (
        checked(StoreError),
        closing(open_store(Settings(data=data))) as source,
        closing(open_store(Settings(data=data, database=database))) as target,
    ):
        monitors = target.move_from(source)
    path.replace(f"{path}.moved")
    opt.say(f"moved {opt.several(monitors, 'monitor')}; what was there is in {path}.moved")
