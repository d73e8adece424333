"""``fourrates reproduce``: the paper's tables and figures, made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, option
from fourrates.cli.errors import Stopped, checked
from fourrates.io import InputError

if TYPE_CHECKING:
    from fourrates.paper.tables import Table
    from fourrates.paper.work import Experiment, Progress


@command
@option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="One table or figure, such as table2 or figure5; may be repeated. synthetic: all that needs no data.",
)
@option("--runs", metavar="N", type=click.IntRange(min=1), default=100, help="Runs of each experiment.")
@option("--seed", metavar="N", type=click.IntRange(min=0), default=0, help="Of the first run.")
@option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Processes; one for each processor if 0.",
)
@option("--quick", is_flag=True, help="Shorten the streams: a trial of everything.")
@option(
    "--data",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where the data sets are; then FOURRATES_DATA, then the cache.",
)
@option(
    "--out",
    section=opt.OUTPUT,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    default="fourrates-paper",
    help="Where everything goes.",
)
@opt.json
def reproduce(
    only: tuple[str, ...],
    runs: int,
    seed: int,
    jobs: int,
    quick: bool,
    data: Path | None,
    out: Path,
    json: bool,
) -> None:
    """Make every table and figure of the paper again.

    Each is shown next to what the paper printed. What is finished is kept: stop it with Ctrl-C, and the same command
    goes on from there.

    Examples
    --------
      fourrates reproduce --data data
      fourrates reproduce --only table2 --only synthetic --runs 1000
      fourrates reproduce --quick --runs 2
    """
    _check_installed()
    from fourrates.paper import page, work
    from fourrates.paper.catalogue import Context, choose
    from fourrates.paper.tables import Table

    with checked():
        choice = choose(only, quick)
    folder = None if data is None else str(data)
    _check_data(choice.data, folder)
    out.mkdir(parents=True, exist_ok=True)
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
        kept = out / "results"
        raise Stopped(f"stopped; what is finished is kept in {kept}, and the same command goes on from there") from None
    context = Context(choice.experiments, results, seed, folder)
    asked = page.Asked(runs, seed, quick, only)
    made = {item: item.make(context) for item in choice.items}
    page.write(out, asked, made)
    if json:
        print(output.as_json(page.numbers(asked, made)))
    else:
        for item, what in made.items():
            if isinstance(what, Table):
                _show(item.title, what)
    opt.say(f"Open {(out / 'index.html').resolve()} in a browser.")


def _check_installed() -> None:
    try:
        import matplotlib  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError as error:
        raise InputError(f"reproduce needs {error.name}: pip install 'fourrates[paper]'") from None


def _check_data(names: tuple[str, ...], folder: str | None) -> None:
    """See that every data set is there before any work is done."""
    from fourrates.streams.datasets import DatasetError, paths

    missing = []
    for name in names:
        try:
            paths(name, folder)
        except DatasetError as error:
            missing.append(str(error))
    if missing:
        raise InputError(f"{'; '.join(missing)}; what needs no data: --only synthetic")


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar for each experiment and one for all, with the time left; where nobody watches, a line for each finished."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

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
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
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
                opt.say(f"{name}: {total} run{'s' if total != 1 else ''}")

        yield tell


def _show(title: str, table: Table) -> None:
    grid = output.grid()
    grid.title, grid.title_justify = output.literal(title), "left"
    for number, name in enumerate(table.columns[:-1]):
        grid.add_column(output.literal(name), justify="left" if number == 0 else "right")
    for row in table.rows:
        grid.add_row(*map(output.literal, row[:-1]))
    out = output.console()
    out.print(grid)
