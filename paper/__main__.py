"""``python -m paper``, or ``make paper``: the paper's tables and figures, made again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table as Grid
from rich.text import Text

from paper import page, work
from paper.catalogue import Context, choose
from paper.datasets import DatasetError, paths
from paper.tables import Table
from paper.work import Experiment, Progress

INTERRUPTED = 130


class Refused(click.ClickException):
    """What was asked for cannot be made."""

    exit_code = 2


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="One table or figure, such as table2 or figure5; may be repeated. synthetic: all that needs no data.",
)
@click.option("--runs", metavar="N", type=click.IntRange(min=1), default=100, help="Runs of each experiment.")
@click.option("--seed", metavar="N", type=click.IntRange(min=0), default=0, help="Of the first run.")
@click.option("--jobs", metavar="N", type=click.IntRange(min=0), default=0, help="Processes; one a processor if 0.")
@click.option("--quick", is_flag=True, help="Shorten the streams: a trial of everything.")
@click.option(
    "--data",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where the data sets are; then FOURRATES_DATA, then the cache.",
)
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), default="build/paper", help="Of the results.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON instead of tables.")
@click.pass_context
def main(
    ctx: click.Context,
    only: tuple[str, ...],
    runs: int,
    seed: int,
    jobs: int,
    quick: bool,
    data: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Make every table and figure of the paper again, each next to what the paper printed.

    Finished runs are saved: stop with Ctrl-C, and the same command resumes there.
    """
    try:
        choice = choose(only, quick)
    except ValueError as error:
        raise Refused(str(error)) from None
    folder = None if data is None else str(data)
    _check_data(choice.data, folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{out}: {error.strerror}") from None
    try:
        with _progress() as progress:
            results = work.results(
                choice.experiments,
                runs=runs,
                seed=seed,
                jobs=jobs or os.cpu_count() or 1,
                folder=out / "results",
                data=folder,
                progress=progress,
            )
    except KeyboardInterrupt:
        click.echo(f"stopped; finished runs are in {out / 'results'}, and the same command resumes there", err=True)
        ctx.exit(INTERRUPTED)
    context = Context(choice.experiments, results, seed, folder)
    asked = page.Asked(runs, seed, quick, only)
    made = {item: item.make(context) for item in choice.items}
    page.write(out, asked, made)
    if as_json:
        click.echo(json.dumps(page.numbers(asked, made)))
    else:
        for item, what in made.items():
            if isinstance(what, Table):
                _show(item.title, what)
    click.echo(f"Open {(out / 'index.html').resolve()} in a browser.", err=True)


def _check_data(names: tuple[str, ...], folder: str | None) -> None:
    """See that every data set is there before any work is done."""
    missing = []
    for name in names:
        try:
            paths(name, folder)
        except DatasetError as error:
            missing.append(str(error))
    if missing:
        raise Refused(f"{'; '.join(missing)}; what needs no data: --only synthetic")


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar for each experiment and one for all, with the time left; without a terminal, a line for each finished."""
    console = Console(stderr=True)
    done: dict[str, float] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[shown]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        whole = bars.add_task("everything", total=None, shown="")
        tasks: dict[str, Any] = {}
        totals: dict[str, float] = {}

        def tell(experiment: Experiment, finished: int, total: int) -> None:
            name = experiment.name
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total, start=False, shown="")
                totals[name] = total * experiment.cost
            elif not done.get(name):
                bars.start_task(tasks[name])
            done[name] = finished * experiment.cost
            bars.update(tasks[name], completed=finished, shown=f"{finished} of {total}")
            share = sum(done.values()) / sum(totals.values())
            bars.update(whole, completed=share, total=1.0, shown=f"{share:.0%}")
            if finished == total and not console.is_terminal:
                click.echo(f"{name}: {total} run{'s' if total != 1 else ''}", err=True)

        yield tell


def _show(title: str, table: Table) -> None:
    grid = Grid(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(table.columns[:-1]):
        grid.add_column(Text(name), justify="left" if number == 0 else "right")
    for row in table.rows:
        grid.add_row(*map(Text, row[:-1]))
    out = Console(highlight=False)
    (out if out.is_terminal else Console(highlight=False, width=140)).print(grid)


if __name__ == "__main__":
    main(prog_name="python -m paper")
