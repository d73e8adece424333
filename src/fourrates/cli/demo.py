"""``fourrates demo``, to find and show a drift that leaves accuracy flat."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import numpy as np

from fourrates.cli import options as opt
from fourrates.cli.commands import argument, command
from fourrates.plain import moment
from fourrates.streams import fraud

SEED = 5


@command
@argument(
    "folder",
    metavar="[FOLDER]",
    type=click.Path(path_type=Path),
    default="fourrates-demo",
    help="Folder for the data and the report; fourrates-demo.",
)
@click.pass_context
def demo(ctx: click.Context, folder: Path) -> None:
    """Make a fraud-like stream that drifts, and find the drifts.

    200,000 card transactions over ten days, 2 % of them fraud. On day 6 the classifier goes blind to two thirds of the
    frauds it used to catch, and its accuracy does not move. On day 8 it is repaired. A report
    shows the findings.
    """
    from fourrates.cli.detect import detect

    folder.mkdir(parents=True, exist_ok=True)
    data, page = folder / "transactions.csv", folder / "report.html"
    stream = fraud(SEED)
    _write(data, stream.times, stream.y_true, stream.y_pred)
    right = stream.y_true == stream.y_pred
    caught = [stream.y_pred[part][stream.y_true[part] == 1].mean() for part in _parts(stream.changes)]
    accuracy = [right[part].mean() for part in _parts(stream.changes)]
    opt.say(f"{data}: {right.size:,} transactions, {stream.y_true.mean():.1%} of them fraud. In truth:")
    names = ("at first", *(f"from {moment(stream.times[change], False, precise=False)}" for change in stream.changes))
    for name, tpr, share in zip(names, caught, accuracy, strict=True):
        opt.say(f"  {name:<22} frauds caught (tpr) {tpr:.2f}   accuracy {share:.3f}")

    opt.say(f"\n$ {shlex.join(['fourrates', 'detect', str(data), '--report', str(page)])}")
    ctx.invoke(detect, files=(str(data),), report=page)
    opt.say(f"Open {page.resolve()} in a browser.")


def _parts(changes: tuple[int, int]) -> tuple[slice, slice, slice]:
    first, second = changes
    return slice(first), slice(first, second), slice(second, None)


def _write(path: Path, times: np.ndarray, y_true: np.ndarray, y_pred: np.ndarray) -> None:
    rows = zip(np.datetime_as_string(times).tolist(), y_true.tolist(), y_pred.tolist(), strict=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("timestamp,y_true,y_pred\n")
        file.writelines(f"{time},{truth},{pred}\n" for time, truth, pred in rows)
