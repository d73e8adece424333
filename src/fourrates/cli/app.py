"""The commands put together, and one shape for everything that goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

import fourrates
from fourrates.cli import INTERRUPTED
from fourrates.cli.bounds import bounds
from fourrates.cli.compare import compare
from fourrates.cli.datasets import datasets
from fourrates.cli.demo import demo
from fourrates.cli.design import design
from fourrates.cli.detect import detect
from fourrates.cli.reproduce import reproduce
from fourrates.cli.watch import watch
from fourrates.io import InputError

app = typer.Typer(
    name="fourrates",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"fourrates {fourrates.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Tell whether a classifier has drifted, which of its rates moved, which way, and since when.

    [bold]Try it[/bold]

      fourrates demo                                     [dim]found and shown[/dim]

      fourrates detect predictions.csv                   [dim]as a table[/dim]

      fourrates detect 2026-*.parquet --report r.html    [dim]as a page[/dim]

      tail -f log.jsonl | fourrates watch -              [dim]as it happens[/dim]
    """


app.command()(detect)
app.command()(compare)
app.command()(watch)
app.command()(bounds)
app.command()(design)
app.command()(datasets)
app.command()(demo)
app.command()(reproduce)


# Typer carries a copy of click, or uses the one installed: its errors are found by way of one it shares.
_ClickError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def run(arguments: Sequence[str]) -> int:
    """Run a command and return the exit status. What is wrong is said in one line, never in a traceback."""
    try:
        status = app(list(arguments), prog_name="fourrates", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except _ClickError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help was asked for by asking for nothing
            print(error.format_message())
            return 2
        return _say(f"{error.format_message()} (--help tells more)")
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # click and rich turn the first into the second
        return _say("the pipe that took the output was closed")
    except MemoryError:
        return _say("out of memory")
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _say(f"{where}{(error.strerror or str(error)).lower()}")
    except (InputError, ValueError, TypeError) as error:
        return _say(str(error))


def _say(message: str, status: int = 2) -> int:
    """Say what is wrong, in one line, and see to it that nothing more is written."""
    line = " ".join(message.split())
    with suppress(OSError):
        print(f"fourrates: {line}", file=sys.stderr, flush=True)
    # What is left in the buffer of a pipe nobody reads, or of a full disk, would be tried again at exit.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status
