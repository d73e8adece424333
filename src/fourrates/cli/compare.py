"""``fourrates compare``, whether a second model is better than the first."""

from __future__ import annotations

import click

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, gathered, option
from fourrates.cli.errors import checked

data = gathered(
    opt.Data,
    "data",
    option("--truth", metavar="COLUMN", help="Column of true labels; inferred if not given."),
    option(
        "--pred",
        metavar="COLUMN[,COLUMN]",
        required=True,
        help="The predictions of both models, if both saw every row; one column with --by, if each saw its own.",
    ),
    option("--by", metavar="COLUMN", help="Column that names the model, such as a version."),
    opt.classes,
)


@command
@opt.files
@data
@option("--models", metavar="A,B", help="With --by, the first and the second; in order of appearance.")
@option(
    "--margin",
    metavar="POINTS",
    type=click.FloatRange(0, 100, max_open=True),
    default=1.0,
    help="How many points of recall worse still count as not worse.",
)
@option(
    "--fail-on",
    type=click.Choice(["worse", "undecided"]),
    multiple=True,
    help="Exit status 1 for this verdict; may be repeated.",
)
@opt.json
def compare(
    files: tuple[str, ...],
    data: opt.Data,
    models: str | None,
    margin: float,
    fail_on: tuple[str, ...],
    json: bool,
) -> int:
    """Find out whether a second model is better than the first.

    Look as often as you like. Over all looks together, a verdict is wrong with a probability of 5 % at most.

    Examples
    --------
      fourrates compare shadow.csv --truth y --pred v1,v2
      fourrates compare canary.parquet --pred prediction --by version --margin 2
    """
    from fourrates.comparison import compare

    classes, positive = data.classes
    assert isinstance(data.pred, str)
    with checked():
        answer = compare(
            list(files),
            data.truth,
            data.pred if data.by is not None else data.pred.split(","),
            data.by,  # type: ignore[arg-type]  # one column
            None if models is None else models.split(","),
            margin / 100,
            positive=positive,
            labels=classes,
            bad=data.bad,
        )
    print(output.as_json(answer.to_dict()) if json else answer)
    return int(answer.verdict in fail_on)
