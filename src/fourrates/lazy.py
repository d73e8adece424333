"""Public names whose modules are imported on first use, so that start-up pays only for its needs; hints to install."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def install(extra: str) -> str:
    """How what is missing is installed, for messages."""
    return f"pip install 'fourrates[{extra}]', or '.[{extra}]' in a checkout"


def importer(package: str, homes: Mapping[str, str], modules: Sequence[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `homes` has the module of each name; `modules` are names themselves."""

    def imported(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return imported
