"""``fourrates compare``: whether a second model is better than the first."""

from __future__ import annotations

import click

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, option
from fourrates.cli.errors import checked
from fourrates.io import Bad


@command
@opt.files
@option("--truth", section=opt.DATA, metavar="COLUMN", help="Column of true labels; guessed if not given.")
@option(
    "--pred",
    section=opt.DATA,
    metavar="COLUMN[,COLUMN]",
    required=True,
    help="The predictions of both models, if both saw every row; one column with --by, if each saw its own.",
)
@option("--by", section=opt.DATA, metavar="COLUMN", help="Column that names the model, such as a version.")
@option(
    "--models", section=opt.DATA, metavar="A,B", help="With --by: the first and the second; in order of appearance."
)
@opt.classes
@option(
    "--margin",
    metavar="POINTS",
    type=click.FloatRange(0, 100, max_open=True),
    default=1.0,
    help="How many points of recall worse still count as not worse.",
)
@option("--alpha", metavar="X", type=float, default=0.05, help="Probability of a wrong verdict, over all looks.")
@option(
    "--fail-on",
    section=opt.OUTPUT,
    type=click.Choice(["worse", "undecided"]),
    multiple=True,
    help="Exit status 1 for this verdict; may be repeated.",
)
@opt.json
def compare(
    files: tuple[str, ...],
    truth: str | None,
    pred: str,
    by: str | None,
    models: str | None,
    labels: str | None,
    positive: str | None,
    bad: Bad,
    margin: float,
    alpha: float,
    fail_on: tuple[str, ...],
    json: bool,
) -> int:
    """Say whether a second model is better than the first.

    Look as often as you like: over all looks together, a verdict is wrong with probability --alpha at most.

    Examples
    --------
      fourrates compare shadow.csv --truth y --pred v1,v2
      fourrates compare canary.parquet --pred prediction --by version --margin 2
    """
    from fourrates.comparison import compare

    classes = opt.labels_of(labels)
    columns = pred if by is not None else pred.split(",")
    with checked():
        answer = compare(
            list(files),
            truth,
            columns,
            by,
            None if models is None else models.split(","),
            margin / 100,
            alpha,
            opt.label_of(positive, classes),
            classes,
            bad,
        )
    print(output.as_json(answer.to_dict()) if json else answer)
    return int(answer.verdict in fail_on)
