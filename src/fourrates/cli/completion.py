"""Shell completion, as click does it, shown or set up for bash, zsh and fish."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fourrates.io import InputError

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_FOURRATES_COMPLETE"
SOURCED = f'eval "$({VARIABLE}={{}}_source fourrates)"'
FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/fourrates.fish"}


def answer(app: click.Command, instruction: str) -> int:
    """What a shell asked for through the environment: the script, or the words that fit."""
    from click.shell_completion import shell_complete

    return 0 if shell_complete(app, {}, "fourrates", VARIABLE, instruction) == 0 else 2


def script(app: click.Command, shell: str) -> str:
    """What the shell is to source."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    return kind(app, {}, "fourrates", VARIABLE).source()


def install(shell: str) -> Path:
    """Let the shell source it from now on; the file that says so."""
    path = Path.home() / FILES[shell]
    line = f"{VARIABLE}=fish_source fourrates | source" if shell == "fish" else SOURCED.format(shell)
    path.parent.mkdir(parents=True, exist_ok=True)
    there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if line not in there:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    return path


def named(shell: str) -> str:
    """The shell itself if one is named, else the one in use."""
    found = shell or Path(os.environ.get("SHELL", "")).name
    if found not in SHELLS:
        raise InputError(f"which shell? {', '.join(SHELLS)} can be completed, as in --show-completion bash")
    return found
