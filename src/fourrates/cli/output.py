"""Findings as tables for people, and as JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from fourrates.escaping import defused, printable
from fourrates.findings import Drift, Finding, Shift
from fourrates.plain import COLUMNS, kind_in_words, moves, rows
from fourrates.plain import moment as moment

if TYPE_CHECKING:  # rich is slow to import, so only if it draws
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

DRIFT, END = "bold dark_orange", "bold dodger_blue1"
SEGMENT = 24  # minimum columns for a segment's name, if it is that long
WIDE = 116  # columns from which a table shows everything


def console() -> Console:
    """The standard output; wide enough for a table if it is not a terminal."""
    from rich.console import Console

    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140, no_color=True)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Shows how far long work has come, in a line that goes at the end, if messages go to a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("", refresh_per_second=2) as status:
        yield status.update


def grid() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def literal(text: object) -> Text:
    """Literal text for a table, without markup, no escape sequences; line breaks are kept."""
    from rich.text import Text

    return Text("\n".join(map(printable, str(text).split("\n"))))


def finding_table(findings: Sequence[Finding], utc: bool, width: int) -> Table:
    """One row per finding, with when, what, which rates, from and to, and since when.

    This fits 80 columns. `WIDE` tables also have the event, and if known the interval of the new rate and its
    observations.
    """
    from rich.text import Text

    known = all(change.after is not None for finding in findings for change in finding.changes)
    wide = width >= WIDE
    many = any(finding.where is not None for finding in findings)
    table = grid()
    table.add_column("found", no_wrap=True)
    table.add_column("", no_wrap=True)
    if many and wide:
        longest = max(len(printable(str(finding.where))) for finding in findings)
        table.add_column("segment", style="bold", overflow="fold", min_width=min(longest, SEGMENT))
    table.add_column("rate", overflow="fold")
    table.add_column("from → to", no_wrap=True, justify="right")
    table.add_column("started about" if known else "warning since", no_wrap=True)
    for name in ("event", *(("90 % interval", "observed") if known else ())) if wide else ():
        table.add_column(name, no_wrap=True, justify="right")
    for finding in findings:
        drift = finding if isinstance(finding, Drift) else None
        precisions = drift.precisions if drift is not None and wide else ()
        moved = moves(finding)
        rates = [Text(printable(str(finding.where)), "bold")] if many and not wide else []
        levels = [""] * len(rates) + [level for _, level in moved]
        rates += [Text(printable(rate)) for rate, _ in moved]
        for precision in precisions:
            rates.append(Text(f"{precision.rate} by {precision.because}", "dim"))
            levels.append(f"{precision.before:.3f} → {precision.after:.3f}")
        rest = [f"{finding.at:,}"] * wide
        if wide and known:
            after = [change.after for change in ([finding] if isinstance(finding, Shift) else finding.changes)]
            rest.append("\n".join("" if now is None else f"{now.lower:.3f} to {now.upper:.3f}" for now in after))
            rest.append("\n".join("" if now is None else f"{now.n:,}" for now in after))
        table.add_row(
            _place(finding.at, finding.time, utc),
            Text(kind_in_words(finding).removesuffix(" drift"), _colour(finding)),
            *([literal(printable(str(finding.where)))] if many and wide else []),
            Text("\n").join(rates),
            "\n".join(levels),
            _since(finding, utc),
            *map(literal, rest),
        )
    return table


def _colour(finding: Finding) -> str:
    return DRIFT if finding.kind == "drift" else END if finding.closes else "bold"


def _since(finding: Finding, utc: bool) -> str:
    """When the new level started, if known, else when the warning opened; empty after a look."""
    if isinstance(finding, Drift) and finding.started is None:
        return f"event {finding.since:,}"
    if finding.started is None or finding.kind in ("confirmation", "withdrawal", "acceptance"):
        return ""
    return _place(finding.started, finding.started_time, utc)


def _place(event: int, time: Any, utc: bool) -> str:
    return f"event {event:,}" if time is None else str(moment(time, utc, precise=False))


def wrapped(text: str, stream: TextIO) -> str:
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def as_json(value: Mapping[str, Any]) -> str:
    """One indented object, without characters a terminal would obey."""
    text = json.dumps(value, indent=2, default=str, ensure_ascii=False)
    return re.sub(r"[^\n -~]", lambda one: one[0] if one[0] == printable(one[0]) else json.dumps(one[0])[1:-1], text)


def as_csv(findings: Sequence[Finding], utc: bool) -> bytes:
    lines = [_line(COLUMNS)]
    lines += [_line(["" if row[name] is None else row[name] for name in COLUMNS]) for row in rows(findings, utc)]
    return "".join(lines).encode("utf-8", "surrogateescape")  # a file name may not be valid text


def _line(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    defusing = [defused(cell) if isinstance(cell, str) else cell for cell in cells]
    csv.writer(text, lineterminator="\r\n").writerow(defusing)
    return text.getvalue().removesuffix("\r\n") + "\n"
