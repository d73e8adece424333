"""What was found, as tables for people and as JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fourrates.escaping import defused, printable
from fourrates.findings import Drift, Finding, Matrix, RateChange, Shift
from fourrates.plain import COLUMNS, counts_split, rows
from fourrates.plain import moment as moment

if TYPE_CHECKING:  # rich is imported where something is drawn: it takes a while
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

ARROWS = {"down": "↓", "up": "↑"}
COLOURS = {"down": "red", "up": "cyan"}


def console() -> Console:
    """The standard output; wide enough for a table when it is no terminal."""
    from rich.console import Console

    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140, no_color=True)


def grid() -> Table:
    """An empty table, in the style of all of them."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False)


def literal(text: object) -> Text:
    """Words for a table as they are: never markup, never an escape sequence; lines stay lines."""
    from rich.text import Text

    return Text("\n".join(map(printable, str(text).split("\n"))))


# For people -------------------------------------------------------------------------------------------------


def finding_table(findings: Sequence[Finding], utc: bool, labels: Sequence[Any]) -> Table:
    """One row a finding: when, since, which rates, from what to what.

    A detector that knows when a drift started has the rate before and after with an interval. For the others the table
    has the counts by true and predicted class, up to the warning and from it on.
    """
    from rich.text import Text

    known = all(change.after is not None for finding in findings for change in finding.changes)

    table = grid()
    many = any(finding.segment is not None for finding in findings)
    if many:
        table.add_column("segment", style="bold")
    for name in ("found", "started" if known else "since"):
        table.add_column(name, no_wrap=True)
    table.add_column("rate", no_wrap=True)
    table.add_column("from → to", no_wrap=True, justify="right")
    binary = len(labels) == 2
    for name in ("90 % interval", "observed") if known else ():
        table.add_column(name, no_wrap=True, justify="right")
    for name in () if known else ("before", "after"):
        said = f"{name}\nsaid {printable(str(labels[0]))}, {printable(str(labels[1]))}" if binary else name
        table.add_column(literal(said), no_wrap=True, justify="right")
    for finding in findings:
        changes, word = finding.changes, _word(finding)
        precisions = finding.precisions if isinstance(finding, Drift) else ()
        moves = [*map(moved, changes), *(f"{p.before:.3f} → {p.after:.3f}" for p in precisions)]
        if isinstance(finding, Shift):
            word, moves = "", [f"{finding.before.value:.3f} → {finding.after.value:.3f}"]
        before, after = counts_split(finding)
        table.add_row(
            *([literal(printable(str(finding.segment)))] if many else []),
            _place(finding.at, finding.time, utc),
            _since(finding, utc),
            Text("\n").join(
                [
                    *([Text(word, "green" if finding.closes else "bold")] if word else []),
                    *([Text("class mix", "cyan")] if isinstance(finding, Shift) else []),
                    *(Text(f"{printable(c.rate)} {ARROWS[c.direction]}", COLOURS[c.direction]) for c in changes),
                    *(Text(f"{p.rate} by {p.because}", "dim") for p in precisions),
                ]
            ),
            _lines(word, moves),
            *(
                [_lines(word, map(_interval, changes)), _lines(word, map(_observed, changes))]
                if known
                else [literal(matrix(before, labels)), literal(matrix(after, labels))]
            ),
        )
    return table


def _word(finding: Finding) -> str:
    """What a finding is, where it is not simply a drift."""
    if isinstance(finding, Drift):
        return "further drift" if finding.further else ""
    return finding.kind


def _lines(word: str, cells: Iterable[str]) -> str:
    """A line for each rate that moved, below the word that says what it is."""
    return "\n".join([*([""] if word else []), *cells])


def _interval(change: RateChange) -> str:
    return "" if change.after is None else f"{change.after.lower:.3f} to {change.after.upper:.3f}"


def _observed(change: RateChange) -> str:
    return "" if change.after is None else f"{change.after.n:,}"


def moved(change: RateChange) -> str:
    """From what it was to what it is, or from what it was expected to be; not every detector expects something."""
    if change.before is not None and change.after is not None:
        return f"{change.before.value:.3f} → {change.after.value:.3f}"
    return f"{change.statistic:.3f}" if change.expected is None else f"{change.expected:.3f} → {change.statistic:.3f}"


def _since(finding: Finding, utc: bool) -> str:
    """When the new level started, as far as the detector knows, else when the warning opened; of a look, its drift."""
    if finding.drift is not None and finding.kind in ("confirmation", "withdrawal", "acceptance"):
        return f"drift of event {finding.drift.at:,}"
    if finding.started is None:
        return f"event {finding.since if isinstance(finding, Drift) else finding.at:,}"
    when = moment(finding.started_time, utc, precise=False)
    return f"about event {finding.started:,}" if when is None else f"{when}\nabout event {finding.started:,}"


def _place(event: int, time: Any, utc: bool) -> str:
    return f"event {event:,}" if time is None else f"{moment(time, utc, precise=False)}\nevent {event:,}"


def matrix(counts: Matrix, labels: Sequence[Any]) -> str:
    """Two lines for two classes, true class by true class; a count of the right ones for more."""
    if not counts:
        return ""
    if len(counts) > 2:
        total = sum(map(sum, counts))
        return f"{sum(counts[i][i] for i in range(len(counts))):,} of {total:,} right"
    widths = [max(len(f"{row[i]:,}") for row in counts) for i in range(2)]
    names = [printable(str(label)) for label in labels]
    longest = max(map(len, names))
    return "\n".join(
        f"{name:>{longest}}: " + "  ".join(f"{count:>{width},}" for count, width in zip(row, widths, strict=True))
        for name, row in zip(names, counts, strict=True)
    )


# For programs -----------------------------------------------------------------------------------------------


def as_json(value: Mapping[str, Any]) -> str:
    """One object, readable; in it nothing that a terminal would obey."""
    text = json.dumps(value, indent=2, default=str, ensure_ascii=False)
    return re.sub(r"[^\n -~]", lambda one: one[0] if one[0] == printable(one[0]) else json.dumps(one[0])[1:-1], text)


def as_csv(findings: Sequence[Finding], utc: bool) -> bytes:
    """One row for each rate that moved."""
    lines = [_line(COLUMNS)]
    lines += [_line(["" if row[name] is None else row[name] for name in COLUMNS]) for row in rows(findings, utc)]
    return "".join(lines).encode("utf-8", "surrogateescape")  # the name of a file may be no text


def _line(cells: Sequence[Any]) -> str:
    """A line of CSV; a cell with a line feed or a carriage return in it is quoted, whatever ends the lines here."""
    text = io.StringIO()
    defusing = [defused(cell) if isinstance(cell, str) else cell for cell in cells]
    csv.writer(text, lineterminator="\r\n").writerow(defusing)
    return text.getvalue().removesuffix("\r\n") + "\n"
