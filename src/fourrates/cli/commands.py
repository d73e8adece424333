"""Click's commands and options, with two additions.

A command's module is imported on use, so that ``token`` need not wait for pyarrow. Help groups options under headings,
because ``detect`` has twenty of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial, reduce, wraps
from importlib import import_module
from inspect import cleandoc
from typing import Any

import click

NAMES = ("detect", "check", "watch", "compare", "sample", "serve", "token", "expect", "demo")
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100}
SECTIONS = {
    "Input": "truth pred score threshold time by labels positive bad stratum version labels_from id order bad_rows "
    "models",
    "Detector": "detector arl reference tolerance learning season",
    "Output": "json csv report plot cost slices fail_on warnings alert",
    "Resume": "state accept accept_after",
}
"""The headings of a help, and the parameters below each."""
HEADINGS = {name: heading for heading, names in SECTIONS.items() for name in names.split()}

Decorator = Callable[[Any], Any]


class Commands(click.Group):
    """The group of all commands. Command NAME is the object NAME in the module NAME."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in NAMES:
            return None
        command: click.Command = getattr(import_module(f"fourrates.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in NAMES:
            from difflib import get_close_matches

            for close in get_close_matches(args[0], NAMES, n=1):
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {close!r}?", ctx)
        return super().resolve_command(ctx, args)


class Command(click.Command):
    """A command whose help shows options under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                rest = "Arguments" if isinstance(parameter, Argument) else "Options"
                sections.setdefault(HEADINGS.get(parameter.name or "", rest), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing, as arguments are listed among the options, under their own heading."""  # click 8.5 calls it


class Argument(click.Argument):
    def __init__(self, *names: Any, help: str, **details: Any) -> None:
        super().__init__(*names, **details)
        self.help: str = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.metavar or self.human_readable_name, self.help


def command(function: Callable[..., Any]) -> Command:
    made: Command = click.command(cls=Command, context_settings=SETTINGS)(function)
    made.help = help_of(made)
    return made


def help_of(made: click.Command) -> str:
    """The help of a command, with examples marked so that click does not rewrap them."""
    return cleandoc(made.help or "").replace("\n\nExamples\n--------\n", "\n\n\b\nExamples\n")


option = click.option
argument = partial(click.argument, cls=Argument)


def gathered(kind: type[Any], name: str, *options: Decorator) -> Decorator:
    """Combine options into one decorator, and one argument, an instance of a data class with their fields."""
    names = [field.name for field in fields(kind)]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(**given: Any) -> Any:
            own = {field: given.pop(field) for field in names if field in given}
            return function(**given, **{name: kind(**own)})

        return together(*options)(call)  # type: ignore[no-any-return]

    return decorate


def together(*options: Decorator) -> Decorator:
    """Combine options into one decorator, in this order in the help."""
    return lambda function: reduce(lambda inner, option: option(inner), reversed(options), function)
