"""The command line, all commands, with one form for every error.

Exit status: 0 for success; 1 for a drift with ``--fail-on drift``; 2 for invalid input or options, with one line of
explanation; 3 for a defect of ours, with a file to send us; 4 for undelivered alerts of ``watch``; 130 after Ctrl-C;
141 if the reader of the output stopped early, as a shell reports it of a program that SIGPIPE ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

import fourrates
from fourrates.cli import DEFECT, INTERRUPTED, REFUSED, UNREAD
from fourrates.cli.commands import SETTINGS, Commands, help_of
from fourrates.cli.errors import Stopped
from fourrates.escaping import printable
from fourrates.io import InputError
from fourrates.lazy import install

EXTRAS = {
    "rich": "cli",
    "jinja2": "cli",
    "pyarrow": "io",
    "narwhals": "io",
    "msgspec": "io",
    "matplotlib": "plot",
}


@click.group(cls=Commands, invoke_without_command=True, context_settings=SETTINGS)
@click.version_option(fourrates.__version__, message="fourrates %(version)s", help="Print the version.")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Find out whether a classifier has drifted, which of its rates moved, which way, and since when.

    Examples
    --------
      fourrates demo                                     found and shown
      fourrates detect predictions.csv                   as a table
      fourrates detect 2026-*.parquet --report r.html    as a page
      tail -f log.jsonl | fourrates watch -              as it happens
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        ctx.exit(REFUSED)


app.help = help_of(app)


def run(arguments: Sequence[str]) -> int:
    try:
        status = app.main(list(arguments), "fourrates", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _say(f"{error.format_message()} (see --help)")
    except Stopped as stopped:
        return _say(str(stopped), INTERRUPTED)
    except (KeyboardInterrupt, click.Abort):  # click turns the first into the second
        return _say("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit) as end:  # click and rich turn the first into the second, with status 1
        if getattr(end, "code", 1) == 0:  # a shell has its words to complete
            return 0
        _discard_output()
        return UNREAD  # and quietly: `head` has what it wanted
    except MemoryError:
        return _say("out of memory")
    except InputError as error:
        return _say(str(error))
    except Exception as error:
        refusal = _refusal(error)
        return _say(refusal) if refusal is not None else _defect(error, arguments)


def _refusal(error: Exception) -> str | None:
    """The message for an unavailable file or library; None for a defect of ours."""
    if isinstance(error, ModuleNotFoundError):
        name = (error.name or "").split(".")[0]
        return f"this needs {name}: {install(EXTRAS[name])}" if name in EXTRAS else None
    if not isinstance(error, OSError):
        return None
    if error.errno is None:
        from fourrates.disk_queue import QueueError

        return str(error) if isinstance(error, QueueError) else None
    where = "" if error.filename is None else os.fsdecode(error.filename)
    if where and Path(where).is_relative_to(Path(fourrates.__file__).parent):
        return None  # a part of the package is missing
    return (f"{where}: " if where else "") + (error.strerror or str(error)).lower()


def _say(message: str, status: int = REFUSED) -> int:
    """Print an error in one line, and make sure that no result follows it."""
    line = printable(" ".join(message.split()))
    with suppress(OSError):
        print(f"fourrates: {line}", file=sys.stderr, flush=True)
    _discard_output()
    return status


def _discard_output() -> None:
    """Drop the rest of the output, as a closed pipe or a full disk would fail again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _defect(error: Exception, arguments: Sequence[str]) -> int:
    """Report a defect of ours, and how to send it."""
    import platform  # seldom needed
    import shlex
    import tempfile
    import traceback

    command = shlex.join(["fourrates", *arguments])
    versions = f"fourrates {fourrates.__version__}, Python {platform.python_version()}, {platform.platform()}"
    details = f"{versions}\n$ {command}\n\n{''.join(traceback.format_exception(error))}"
    try:
        handle, path = tempfile.mkstemp(prefix="fourrates-defect-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(details)
        where = f"the content of {path}"
    except OSError:
        where = "the lines above"
        print("\n".join(map(printable, details.splitlines())), file=sys.stderr)
    status = _say(
        f"a defect of fourrates, not of your data: {traceback.format_exception_only(error)[-1].strip()}", DEFECT
    )
    with suppress(OSError):
        print(f"Please open an issue with {where}.", file=sys.stderr)
    return status
