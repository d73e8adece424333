"""Commands as Typer makes them, but quick to start: each is imported when it is called, and reads its own words.

Typer turns words into values by way of pydantic, which takes longer to import than a million rows take to read. The few
kinds of values there are here are read without it. Whatever is not plainly right is left to Typer, which says what is
wrong with it; so are help and shell completion.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

NAMES = ("detect", "compare", "watch", "bounds", "design", "datasets", "demo", "reproduce")
SETTINGS = {"help_option_names": ["-h", "--help"]}


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **details: Any) -> None:
        super().__init__(**details)
        self.commands: Any = _Modules()


class _Modules(Mapping[str, Any]):
    """From a name to its command: the function of that name in the module of that name, imported when it is needed."""

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        return command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@cache
def command(name: str) -> Any:
    """The command of a name."""
    function = getattr(import_module(f"fourrates.cli.{name}"), name)
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich", context_settings=SETTINGS)
    alone.command(name, cls=Command)(function)
    return get_command(alone)


class Command(TyperCommand):
    """A command that reads its own words where they are plainly right."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Settle the parameters; return the words left over, which are none."""
        values = None if ctx.resilient_parsing else self._values(ctx, args)
        if values is None:
            return super().parse_args(ctx, args)
        ctx.params.update(values)
        ctx.args = []
        return []

    def _values(self, ctx: Any, args: Sequence[str]) -> dict[str, Any] | None:
        """The parameters by name; None if a word is left over, missing, a call for help or not of its kind."""
        words, rest, _ = self.make_parser(ctx).parse_args(list(args))
        function = inspect.unwrap(self.callback)  # type: ignore[arg-type]  # a command has one
        kinds, parameters = get_type_hints(function, include_extras=True), inspect.signature(function).parameters
        if rest or not words.keys() <= parameters.keys():
            return None
        given = {
            name: word for name, word in words.items() if isinstance(word, str | bool | list | tuple) and word != ()
        }
        defaults = {name: parameter.default for name, parameter in parameters.items() if name not in given}
        if inspect.Parameter.empty in defaults.values():
            return None
        try:
            return defaults | {name: value_of(word, kinds[name]) for name, word in given.items()}
        except ValueError:
            return None


def value_of(word: Any, kind: Any) -> Any:
    """A word as the kind of value it stands for; several words as a list.

    Examples
    --------
    >>> from fourrates.cli.commands import value_of
    >>> value_of("0.5", float | None)
    0.5
    >>> value_of(("0.9", "1e-3"), list[float])
    [0.9, 0.001]
    >>> value_of("half", float)
    Traceback (most recent call last):
    ...
    ValueError: could not convert string to float: 'half'
    """
    if get_origin(kind) is Annotated:
        kind, declared = get_args(kind)
        value = value_of(word, kind)
        low, high = getattr(declared, "min", None), getattr(declared, "max", None)
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(f"{word!r} is not in its range")
        return value
    one = (
        next((part for part in get_args(kind) if part is not type(None)), kind)
        if type(None) in get_args(kind)
        else kind
    )
    if get_origin(one) is list:
        return [value_of(each, get_args(one)[0]) for each in word]
    if get_origin(one) is Literal and word in get_args(one):
        return word
    if one is bool and isinstance(word, bool):
        return word
    if one in (str, int, float, Path) and isinstance(word, str):
        return one(word)
    raise ValueError(f"{word!r} is not of kind {kind}")
