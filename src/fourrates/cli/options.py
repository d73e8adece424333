"""Options shared by several commands, and the objects they describe."""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import sys
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from fourrates.baselines import DETECTORS
from fourrates.cli.commands import argument, gathered, option, together
from fourrates.cli.errors import Stopped, checked
from fourrates.cli.output import wrapped
from fourrates.detectors import Detector
from fourrates.escaping import printable
from fourrates.events.door import By
from fourrates.frames import PeekedBatches, open_events
from fourrates.io import BAD, Bad, Columns, Events, InputError
from fourrates.watch.now import several as several

files = argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(),
    help="CSV, TSV, JSON lines, Parquet or Arrow, plain or compressed; globs; folders; - is the standard input.",
)
columns = together(
    option("--truth", metavar="COLUMN", help="Column of true labels; inferred if not given."),
    option("--pred", metavar="COLUMN", help="Column of predictions; inferred if not given."),
    option("--score", metavar="COLUMN", help="Column of scores, instead of --pred."),
    option("--threshold", metavar="X", type=float, help="Scores at or above it are positive; 0.5."),
    option("--time", metavar="COLUMN", help="Column of times: ISO 8601, 01.09.2026 or epoch; inferred."),
)
by = option(
    "--by",
    metavar="COLUMN,...",
    callback=lambda _, __, text: None if text is None else tuple(text.split(",")) if "," in text else text,
    help="Column that makes segments, such as a country or a model; several make one of each combination.",
)
class_names = together(
    option(
        "--classes",
        "labels",
        metavar="A,B,...",
        help="The classes, the positive one of two last; from the data if not given.",
    ),
    option("--positive", metavar="LABEL", help="The positive one of two labels."),
)
classes = together(
    class_names,
    option(
        "--bad",
        type=click.Choice(BAD[:2]),
        default="reject",
        help="Bad rows: stop at the first, or count and skip them. Rows without a label are skipped.",
    ),
)
DEFAULT = "FourRates"
detector = option(
    "--detector",
    "-d",
    metavar="DETECTOR",
    help="Name, or name with parameters: 'LFR(decay=0.98, sides=\"down\")'; FourRates.",
)
arl = option(
    "--budget",
    "arl",
    metavar="BUDGET",
    help="False alarms you can live with: 100000 (events between two) or '1 per month', which is the default if "
    "times are known.",
)
reference = option(
    "--reference",
    metavar="FILE",
    help="The classifier as you shipped it, by a file of its validation set, or its confusion counts, 900,100,200,800. "
    "With --by, a file that has this column gives each segment its own.",
)
tolerance = option(
    "--tolerance",
    metavar="X",
    help="Changes of a recall by less than this are ignored: 0.03 is three points; or by rate, tpr=0.05,tnr=0.02.",
)
learning = option(
    "--learning",
    is_flag=True,
    help="For a model that keeps learning. Falls beyond the tolerance (0.05) are alarms, a rise becomes normal.",
)
season = option(
    "--season",
    type=click.Choice(["auto", "day", "week", "none"]),
    help="Keep normal by hour of the day or by weekday. auto, the default of detect, chooses by the errors of the "
    "first full weeks or days.",
)
stratum = option(
    "--stratum",
    metavar="COLUMN",
    help="Column of whole numbers from 0 to 23, such as a type of day, to keep normal by.",
)
version = option(
    "--version-column",
    "version",
    metavar="COLUMN",
    help="Column of the version of the model that predicted. Each has its own normal and drifts.",
)
folder = option(
    "--data",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("fourrates-data"),
    envvar="FOURRATES_SERVE_DATA",
    help="The folder of the server; created if missing.",
)
late = together(
    option("--labels-from", metavar="FILE", help="File of later true labels, joined by --id."),
    option("--id", metavar="COLUMN", help="Column that both files share; inferred if not given."),
    option(
        "--order",
        type=click.Choice(["prediction", "arrival"]),
        default="prediction",
        help="With --labels-from, events in the order of their predictions, or of their labels.",
    ),
)


@dataclass(frozen=True)
class Data:
    truth: str | None = None
    pred: str | None = None
    score: str | None = None
    threshold: float | None = None
    time: str | None = None
    by: By = None
    labels: str | None = None
    positive: str | None = None
    labels_from: str | None = None
    order: str = "prediction"
    id: str | None = None
    bad: Bad = "reject"
    stratum: str | None = None
    version: str | None = None

    @property
    def columns(self) -> Columns:
        return Columns(
            self.truth, self.pred, self.score, self.time, self.by, self.id, stratum=self.stratum, version=self.version
        )

    @property
    def classes(self) -> tuple[list[Hashable] | None, Hashable]:
        """The labels in `--classes`, numbers if all of them are numbers, and the positive one, if named."""
        classes: list[Hashable] | None = None
        if self.labels is not None:
            words = [word.strip() for word in self.labels.split(",")]
            if "" in words or len(words) < 2:
                raise InputError(f"--classes {self.labels!r}: at least two, separated by commas")
            classes = [int(word) for word in words] if all(map(NUMBER.fullmatch, words)) else [*words]
        text = self.positive
        if classes is None:
            return None, int(text) if text is not None and NUMBER.fullmatch(text.strip()) else text
        return classes, next((label for label in classes if str(label) == text), text)


NUMBER = re.compile(r"[-+]?\d{1,4000}")  # Python does not read longer ones


@dataclass(frozen=True)
class Chosen:
    detector: str | None
    arl: str | None
    reference: str | None
    tolerance: str | None
    learning: bool
    season: str | None

    def asked(self, data: Data) -> dict[str, str | None]:
        """The options that choose the detector and its classes, as given, to be saved with a state."""
        learning = "yes" if self.learning else None
        return {**asdict(self), "learning": learning, "labels": data.labels, "positive": data.positive}

    def detector_options(self, data: Data, *, peeked: bool = False) -> dict[str, Any]:
        """What `frames.new_detector` needs; `peeked` if the first events can choose a season."""
        kind, parameters = spec(self.detector or DEFAULT)
        if self.season == "auto" and not peeked:
            raise InputError("--season auto has nothing to choose by here; give day or week")
        own: dict[str, Any] = {"learning": True} if self.learning else {}
        if self.tolerance is not None:
            own["tolerance"] = tolerance_of(self.tolerance)
        return {
            "kind": kind,
            "parameters": {**parameters, **own},
            "reference": None if self.reference is None else reference_of(self.reference),
            "columns": data.columns,
            "season": {None: "auto", "none": None}.get(self.season, self.season),
            "budget": self.arl,
            "on_message": say,
            "name": "--budget",
        }


chosen = gathered(Chosen, "chosen", detector, arl, reference, tolerance, learning, season)
json = option("--json", is_flag=True, help="Write JSON instead of a table.")


def say(text: str) -> None:
    print(wrapped("\n".join(map(printable, text.split("\n"))), sys.stderr), file=sys.stderr, flush=True)


def events_of(files: Any, columns: Columns, labels_from: str | None = None, **options: Any) -> Events:
    """The events described by the data options; further options as for `io.read`."""
    if labels_from is None and columns.id is not None:
        raise InputError("--id goes with --labels-from, the file of the labels")
    with checked():
        return open_events(files, columns, labels_from, **{"on_message": say, **options})


def peeked(events: Events) -> PeekedBatches:
    try:
        return PeekedBatches(events, events.ahead())
    except KeyboardInterrupt:
        raise Stopped("stopped before the first events were read") from None


class Spec(NamedTuple):
    """A detector as named on the command line: LFR, LFR(decay=0.98)."""

    kind: type[Detector]
    parameters: Mapping[str, Any]


def spec(text: str) -> Spec:
    """Read the name of a detector, with or without parameters."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        call = tree if isinstance(tree, ast.Call) else None
        name = ast.unparse(call.func if call else tree)
        parameters = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords} if call else {}
    except (SyntaxError, ValueError):
        raise InputError(f"detector {text!r} is not written like LFR or LFR(decay=0.98)") from None
    if call and call.args:
        raise InputError(f"detector {text!r}: name the parameters, as in LFR(decay=0.98)")
    kind = {known.lower(): kind for known, kind in DETECTORS.items()}.get(name.lower())
    if kind is None:
        raise InputError(f"no detector {name!r}; there are {', '.join(DETECTORS)}")
    accepted = inspect.signature(kind).parameters
    for parameter in parameters:
        if parameter not in accepted:
            accepted_names = ", ".join(known for known in accepted if known not in ("labels", "positive"))
            raise InputError(f"{kind.__name__} has no parameter {parameter!r}; it has {accepted_names}")
    return Spec(kind, parameters)


def tolerance_of(text: str) -> float | dict[str, float]:
    """The value of `--tolerance`, a number for all recalls, or one per rate."""
    try:
        return float(text)
    except ValueError:
        return named_numbers(text, "--tolerance", "0.03 or tpr=0.05,tnr=0.02")


def named_numbers(text: str, option: str, example: str) -> dict[str, float]:
    try:
        pairs = (part.rsplit("=", 1) for part in text.split(","))
        return {name.strip(): float(number) for name, number in pairs}
    except ValueError:
        raise InputError(f"{option} {text!r} is not written like {example}") from None


COUNTS = re.compile(r"[\d\s,;\[\]]+")


def counts_of(text: str, name: str) -> Any:
    counts = [int(word) for word in re.findall(r"\d+", text)] if COUNTS.fullmatch(text) else []
    size = math.isqrt(len(counts))
    if size < 2 or size * size != len(counts):
        raise InputError(f"{name} {text!r}: {len(counts)} counts make no square, as 900,100,200,800 do")
    return np.reshape(counts, (size, size))


def reference_of(text: str) -> Any:
    """The reference in `--reference`, a file of validation pairs, or confusion counts."""
    return counts_of(text, "--reference") if not os.path.exists(text) and COUNTS.fullmatch(text) else text
