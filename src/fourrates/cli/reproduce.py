"""``fourrates reproduce``: the paper's tables and figures, made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.io import InputError

if TYPE_CHECKING:
    from fourrates.paper.tables import Table
    from fourrates.paper.work import Experiment, Progress


def reproduce(
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="One table or figure, such as table2 or figure5; as often as you like. "
            "synthetic: all that needs no data.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each experiment.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the first run.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", min=0, help="Processes; as many as there are processors if 0.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Shorten the streams: a trial of everything.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the data sets are; then FOURRATES_DATA, then the cache."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where everything goes.", rich_help_panel=opt.OUTPUT)
    ] = Path("fourrates-paper"),
    json: opt.Json = False,
) -> None:
    """Make every table and figure of the paper again, each beside what the paper printed.

    What is finished is kept: stop it with Ctrl-C, and the same command goes on from there.

    [bold]Examples[/bold]

      fourrates reproduce --data data

      fourrates reproduce --only table2 --only synthetic --runs 1000

      fourrates reproduce --quick --runs 2
    """
    _check_installed()
    from fourrates.paper import page, work
    from fourrates.paper.catalogue import Context, choose
    from fourrates.paper.tables import Table

    choice = choose(only or [], quick)
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
        opt.say(f"What is finished is kept in {out / 'results'}; the same command goes on from there.")
        raise
    context = Context(choice.experiments, results, seed, folder)
    asked = page.Asked(runs, seed, quick, tuple(only or ()))
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
    grid.title, grid.title_justify = title, "left"
    for number, name in enumerate(table.columns[:-1]):
        grid.add_column(name, justify="left" if number == 0 else "right")
    for row in table.rows:
        grid.add_row(*row[:-1])
    out = output.console()
    out.print(grid)
