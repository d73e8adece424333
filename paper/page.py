"""What was made, as one HTML page with nothing to fetch, as Markdown, and as numbers for programs."""

from __future__ import annotations

import base64
import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import fourrates
from fourrates import files
from paper import figures
from paper.catalogue import Drawing, Item
from paper.tables import Record, Table

PAPER = 'H. Wang and Z. Abraham, "Concept Drift Detection for Streaming Data", IJCNN 2015'


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: the head of the page and of the numbers."""

    runs: int
    seed: int
    quick: bool
    only: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """As it is typed."""
        words = ["python", "-m", "paper", "--runs", str(self.runs), "--seed", str(self.seed)]
        words += ["--quick"] if self.quick else []
        return shlex.join([*words, *(word for name in self.only for word in ("--only", name))])


Made = Mapping[Item, Table | Drawing]


def write(folder: Path, asked: Asked, made: Made) -> list[Path]:
    """Write everything into a folder: the page, the summary, the figures, the numbers; what was written."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    (folder / "numbers").mkdir(exist_ok=True)
    written: list[Path] = []

    def put(name: str, content: bytes) -> None:
        files.write(folder / name, content)
        written.append(folder / name)

    pictures: dict[str, bytes] = {}
    for item, what in made.items():
        put(f"numbers/{item.name}.csv", as_csv(what.records))
        if isinstance(what, Drawing):
            pictures[item.name] = figures.saved(what.figure, "svg")
            put(f"figures/{item.name}.svg", pictures[item.name])
            put(f"figures/{item.name}.png", figures.saved(what.figure, "png"))
    put("numbers.json", json.dumps(numbers(asked, made), indent=1).encode())
    put("summary.md", markdown(asked, made).encode())
    put("index.html", page(asked, made, pictures).encode())
    return written


def numbers(asked: Asked, made: Made) -> dict[str, Any]:
    """Everything as JSON has it."""
    return {
        "command": asked.command,
        "version": fourrates.__version__,
        "runs": asked.runs,
        "seed": asked.seed,
        "quick": asked.quick,
        "items": {
            item.name: {"title": item.title, "notes": _notes(what), "records": what.records}
            for item, what in made.items()
        },
    }


def as_csv(records: Sequence[Record]) -> bytes:
    """One row a record; a list in one cell, separated by spaces."""
    text = io.StringIO()
    if records:
        writer = csv.DictWriter(text, list(records[0]), restval="", lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow(
                {key: " ".join(map(str, value)) if isinstance(value, list) else value for key, value in record.items()}
            )
    return text.getvalue().encode()


def _notes(what: Table | Drawing) -> list[str]:
    return [note for note in what.notes if note]


def _shortened(asked: Asked) -> str:
    return " Streams are shortened (--quick): a trial of everything, not to be held against the paper." * asked.quick


# Markdown ----------------------------------------------------------------------------------------------------


def markdown(asked: Asked, made: Made) -> str:
    """The tables and what is to say, for the docs."""
    parts = [f"`{asked.command}`, fourrates {fourrates.__version__}.{_shortened(asked)}"]
    for item, what in made.items():
        parts.append(f"### {item.title}")
        if isinstance(what, Table):
            rows = [what.columns, ["---"] * len(what.columns), *what.rows]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts.append("\n".join(f"- {note}" for note in _notes(what)))
    return "\n\n".join(part for part in parts if part) + "\n"


# HTML --------------------------------------------------------------------------------------------------------


def page(asked: Asked, made: Made, pictures: Mapping[str, bytes]) -> str:
    """The page."""
    from fourrates.report.template import render  # with Jinja2, which the numbers do not need

    style = (resources("fourrates.report") / "page.css").read_text() + (resources(__package__) / "page.css").read_text()
    return render(
        __package__,
        "page.html",
        style=style,
        paper=PAPER,
        runs=f"{asked.runs:,} run{'' if asked.runs == 1 else 's'}",
        shortened=_shortened(asked),
        command=asked.command,
        sections=[_section(item, what, pictures.get(item.name)) for item, what in made.items()],
    )


def _section(item: Item, what: Table | Drawing, picture: bytes | None) -> dict[str, Any]:
    """What the template shows of a table or a figure, which is an image: names in one drawing are those in the next."""
    links = [f"numbers/{item.name}.csv"]
    if isinstance(what, Drawing):
        links += [f"figures/{item.name}.svg", f"figures/{item.name}.png"]
    return {
        "name": item.name,
        "title": item.title,
        "table": what if isinstance(what, Table) else None,
        "picture": base64.b64encode(picture).decode() if picture is not None else None,
        "notes": _notes(what),
        "links": links,
    }
