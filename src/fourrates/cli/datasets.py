"""``fourrates datasets``: the paper's public data sets, where they are and whether they are what they should be."""

from __future__ import annotations

from pathlib import Path

import click

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import argument, command, option
from fourrates.io import InputError


@command
@argument("names", nargs=-1, metavar="[NAME]...", help="Data sets to bring here; all are listed if none is named.")
@option(
    "--folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where to look first; then FOURRATES_DATA, then the cache.",
)
@opt.json
def datasets(names: tuple[str, ...], folder: Path | None, json: bool) -> None:
    """List the paper's public data sets, or fetch some.

    Files are found or downloaded, and verified.

    Examples
    --------
      fourrates datasets
      fourrates datasets sea hyperplane --folder data
    """
    from fourrates.streams.datasets import DATASETS, DatasetError, paths

    rows = []
    for name in names or DATASETS:
        try:
            files, state = paths(name, folder, fetch=bool(names)), "verified"
        except (DatasetError, ValueError) as error:
            if names:
                raise InputError(str(error)) from None
            files, state = [], str(error)
        rows.append({"name": name, "state": state, "files": [str(path) for path in files]})
    if json:
        print(output.as_json({"datasets": rows}))
        return
    table = output.grid()
    for heading in ("data set", "changes", "where"):
        table.add_column(heading)
    for row in rows:
        name = str(row["name"])
        changes = ", ".join(f"{change:,}" for change in DATASETS[name].changes) or "not known"
        where = "\n".join(row["files"]) or str(row["state"])
        table.add_row(name, changes, output.literal(where))
    output.console().print(table)
