"""Options shared by several commands, and the objects they describe."""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import sys
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import click
import numpy as np

from fourrates.baselines import DETECTORS
from fourrates.cli.commands import Decorator, argument, gathered, option, together
from fourrates.cli.errors import Stopped, checked
from fourrates.cli.output import wrapped
from fourrates.detectors import Detector
from fourrates.escaping import printable
from fourrates.events.door import By
from fourrates.frames import PeekedBatches, chosen_strata, make, open_events, reference_counts
from fourrates.io import BAD, MAX_LINE, Bad, Columns, Events, InputError
from fourrates.labels import Labels
from fourrates.state import MAX_STATE
from fourrates.watch import MAX_SEGMENTS

DATA, DETECTOR, LIMITS, OUTPUT, RESUME = "Input", "Detector", "Limits", "Output", "Resume"

files = argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(),
    help="CSV, TSV, JSON lines, Parquet or Arrow, plain or compressed; globs; folders; - is the standard input.",
)
columns = together(
    option("--truth", section=DATA, metavar="COLUMN", help="Column of true labels; guessed if not given."),
    option("--pred", section=DATA, metavar="COLUMN", help="Column of predictions; guessed if not given."),
    option("--score", section=DATA, metavar="COLUMN", help="Column of scores, instead of --pred."),
    option(
        "--threshold",
        section=DATA,
        metavar="X",
        type=float,
        help="The score from which on the prediction is positive; 0.5.",
    ),
    option(
        "--time",
        section=DATA,
        metavar="COLUMN",
        help="Column of times: ISO 8601, 01.09.2026 or epoch; guessed.",
    ),
)
by = option(
    "--by",
    section=DATA,
    metavar="COLUMN,...",
    callback=lambda _, __, text: None if text is None else tuple(text.split(",")) if "," in text else text,
    help="Column that makes segments, such as a country or a model; several make one of each combination.",
)
class_names = together(
    option(
        "--classes",
        "labels",
        section=DATA,
        metavar="A,B,...",
        help="The classes, the positive one of two last; from the data if not given.",
    ),
    option("--positive", section=DATA, metavar="LABEL", help="The positive one of two labels."),
)
classes = together(
    class_names,
    option(
        "--bad",
        section=DATA,
        type=click.Choice(BAD[:2]),
        default="reject",
        help="Rows that cannot be used: stop at the first, or count and skip them. Rows without a label are skipped.",
    ),
)
DEFAULT = "FourRates"
detector = option(
    "--detector",
    "-d",
    section=DETECTOR,
    metavar="DETECTOR",
    help="Name, or name with parameters: 'LFR(decay=0.98, sides=\"down\")'; FourRates.",
)
arl = option(
    "--budget",
    "arl",
    section=DETECTOR,
    metavar="BUDGET",
    help="False alarms you can live with: 100000 (events between two) or '1 per month', which is the default where "
    "times are known.",
)
reference = option(
    "--reference",
    section=DETECTOR,
    metavar="FILE",
    help="The classifier as you shipped it: a file of its validation set, or its confusion counts, 900,100,200,800. "
    "With --by, a file that has this column gives each segment its own.",
)
tolerance = together(
    option(
        "--tolerance",
        section=DETECTOR,
        metavar="X",
        help="Changes of a recall by less than this are ignored: 0.03 is three points; or by rate, tpr=0.05,tnr=0.02.",
    ),
    option(
        "--learning",
        section=DETECTOR,
        is_flag=True,
        help="The model goes on learning: falls beyond the tolerance (0.05) are alarms, an improvement becomes the "
        "normal.",
    ),
)
season = option(
    "--season",
    section=DETECTOR,
    type=click.Choice(["auto", "day", "week", "none"]),
    help="Keep normal by hour of the day or by weekday. auto, the default of detect: as the errors of the first full "
    "weeks or days say.",
)
stratum = option(
    "--stratum",
    section=DATA,
    metavar="COLUMN",
    help="Column of whole numbers from 0 to 23, such as a type of day: normal is kept by it.",
)
version = option(
    "--version-column",
    "version",
    section=DATA,
    metavar="COLUMN",
    help="Column of the version of the model that predicted: each has a normal and drifts of its own.",
)
late = together(
    option("--labels-from", section=DATA, metavar="FILE", help="File of true labels that came later, joined by --id."),
    option("--id", section=DATA, metavar="COLUMN", help="Column that both files share; guessed if not given."),
    option(
        "--order",
        section=DATA,
        type=click.Choice(["prediction", "arrival"]),
        default="prediction",
        help="With --labels-from: events in the order of their predictions, or as their labels come.",
    ),
)


def _at_most(name: str, metavar: str, default: int, help: str) -> Decorator[Any]:
    return option(name, section=LIMITS, metavar=metavar, type=click.IntRange(1), default=default, help=help)


@dataclass(frozen=True)
class Data:
    truth: str | None
    pred: str | None
    score: str | None
    threshold: float | None
    time: str | None
    by: By
    labels: str | None
    positive: str | None
    labels_from: str | None = None
    id: str | None = None
    order: str = "prediction"
    bad: Bad = "reject"
    stratum: str | None = None
    version: str | None = None

    @property
    def columns(self) -> Columns:
        return Columns(
            self.truth, self.pred, self.score, self.time, self.by, self.id, stratum=self.stratum, version=self.version
        )


@dataclass(frozen=True)
class Chosen:
    """The detector and its budget, as asked for."""

    detector: str | None
    arl: str | None
    reference: str | None
    tolerance: str | None
    learning: bool
    season: str | None

    def asked(self) -> dict[str, str | None]:
        return {name: str(value) if value else None for name, value in asdict(self).items()}

    def spec(self, stratum: str | None = None, begun: PeekedBatches | None = None, sampled: bool = False) -> Spec:
        """The detector with its parameters, including those from options; the first events may choose its season."""
        found = spec(self.detector or DEFAULT)
        more: dict[str, Any] = {"learning": True} if self.learning else {}
        season: Any = None if self.season == "none" else self.season
        if sampled and "sampled" in inspect.signature(found.kind).parameters:
            more["sampled"] = True
        elif begun is not None and season in (None, "auto") and self.season != "none":
            season = "auto" if "strata" not in found.parameters else None
        if season == "auto" and begun is None:
            raise InputError("--season auto: there is nothing to choose it by; say day or week")
        if (strata := chosen_strata(found.kind, season, stratum, begun or PeekedBatches(iter(())), say)) is not None:
            more["strata"] = strata
        if self.tolerance is not None:
            more["tolerance"] = tolerance_of(self.tolerance)
        for name in more:
            if name not in inspect.signature(found.kind).parameters:
                raise InputError(f"--{name}: {found.kind.__name__} has none; FourRates has")
        return replace(found, parameters={**found.parameters, **more})


@dataclass(frozen=True)
class Limits:
    max_line: int
    max_segments: int
    max_state: int


chosen = gathered(Chosen, "chosen", detector, arl, reference, tolerance, season)
limits = gathered(
    Limits,
    "limits",
    _at_most("--max-line", "BYTES", MAX_LINE, "The longest line that is read."),
    _at_most("--max-segments", "N", MAX_SEGMENTS, "The most segments that --by may make."),
    _at_most("--max-state", "BYTES", MAX_STATE, "The largest state that is read."),
)
NAMING = ("detector", "tolerance", "learning", "season")  # options that choose the detector
json = option("--json", section=OUTPUT, is_flag=True, help="Write JSON instead of a table.")


def say(text: str) -> None:
    print(wrapped("\n".join(map(printable, text.split("\n"))), sys.stderr), file=sys.stderr, flush=True)


def several(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> from fourrates.cli.options import several
    >>> several(1, "drift"), several(2000, "event")
    ('1 drift', '2,000 events')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


# The data ---------------------------------------------------------------------------------------------------


def labels_of(text: str | None) -> list[Hashable] | None:
    """The labels in `--classes`; numbers if all of them are numbers."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if "" in words or len(words) < 2:
        raise InputError(f"--classes {text!r}: at least two, separated by commas")
    try:
        return [int(word) for word in words]
    except ValueError:
        return list(words)


NUMBER = re.compile(r"\d{1,4000}")  # Python does not read longer ones


def label_of(text: str | None, labels: list[Hashable] | None) -> Hashable:
    if labels is None:
        return int(text) if text is not None and NUMBER.fullmatch(text.strip()) else text
    return next((label for label in labels if str(label) == text), text)


def events_of(files: Any, columns: Columns, labels_from: str | None = None, **options: Any) -> Events:
    """The events described by the data options; further options as for `io.read`."""
    if labels_from is None and columns.id is not None:
        raise InputError("--id goes with --labels-from, which says where the labels are")
    with checked():
        return open_events(files, columns, labels_from, say=say, **options)


def peeked(events: Events) -> PeekedBatches:
    try:
        return PeekedBatches(events.ahead())
    except KeyboardInterrupt:
        raise Stopped("stopped before the first events were read") from None


# The detector -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spec:
    """A detector as named on the command line: LFR, LFR(decay=0.98)."""

    text: str
    kind: type[Detector]
    parameters: Mapping[str, Any]


def spec(text: str) -> Spec:
    """Read the name of a detector, with or without parameters.

    Examples
    --------
    >>> from fourrates.cli.options import spec
    >>> spec("lfr(decay=(0.9, 0.98))").parameters
    {'decay': (0.9, 0.98)}
    >>> spec("DDM(speed=3)")
    Traceback (most recent call last):
    ...
    fourrates.io.InputError: DDM has no parameter 'speed'; it has warn, detect, minimum
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        call = tree if isinstance(tree, ast.Call) else None
        name = ast.unparse(call.func if call else tree)
        if call and call.args:
            raise InputError(f"detector {text!r}: name the parameters, as in LFR(decay=0.98)")
        parameters = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords} if call else {}
    except InputError:
        raise
    except (SyntaxError, ValueError):
        raise InputError(f"detector {text!r} is not written like LFR or LFR(decay=0.98)") from None
    kind = _kind(name)
    accepted = inspect.signature(kind).parameters
    for parameter in parameters:
        if parameter not in accepted:
            theirs = ", ".join(one for one in accepted if one not in ("labels", "positive"))
            raise InputError(f"{kind.__name__} has no parameter {parameter!r}; it has {theirs}")
    return Spec(text.strip(), kind, parameters)


def tolerance_of(text: str) -> float | dict[str, float]:
    """The value of `--tolerance`: a number for all recalls, or one per rate.

    Examples
    --------
    >>> from fourrates.cli.options import tolerance_of
    >>> tolerance_of("0.03"), tolerance_of("tpr=0.05, tnr=0.02")
    (0.03, {'tpr': 0.05, 'tnr': 0.02})
    """
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.rsplit("=", 1) for part in text.split(","))
        return {rate.strip(): float(value) for rate, value in pairs}
    except ValueError:
        raise InputError(f"--tolerance {text!r} is not written like 0.03 or tpr=0.05,tnr=0.02") from None


def _kind(name: str) -> type[Detector]:
    ours = {one.lower(): one for one in DETECTORS}
    if (kind := DETECTORS.get(ours.get(name.lower(), ""))) is not None:
        return kind
    raise InputError(f"no detector {name!r}; there are {', '.join(DETECTORS)}")


def make_detector(
    chosen: Spec,
    labels: Labels,
    arl: str | None = None,
    times: Any = None,
    reference: Any = None,
    quiet: bool = False,
) -> Detector:
    """The detector of `--detector`, `--budget` and `--reference`, or the default one; reports the budget."""
    with checked():
        return make(
            chosen.kind,
            labels,
            chosen.parameters,
            budget=arl,
            reference=reference,
            times=times,
            say=(lambda _: None) if quiet else say,
            name="--budget",
        )


COUNTS = re.compile(r"[\d\s,;\[\]]+")


def counts_of(text: str, name: str) -> Any:
    counts = [int(word) for word in re.findall(r"\d+", text)] if COUNTS.fullmatch(text) else []
    size = math.isqrt(len(counts))
    if size < 2 or size * size != len(counts):
        raise InputError(f"{name} {text!r}: {len(counts)} counts make no square, as 900,100,200,800 do")
    return np.reshape(counts, (size, size))


def reference_of(text: str, events: Events, columns: Columns, threshold: float | None) -> Any:
    """The counts in `--reference`: from a file of validation pairs, or given directly.

    Examples
    --------
    >>> from fourrates.cli.options import reference_of
    >>> from fourrates.io import Columns, read
    >>> reference_of("900,100,200,800", read({}), Columns(), None).tolist()
    [[900, 100], [200, 800]]
    """
    with checked():
        if not os.path.exists(text) and COUNTS.fullmatch(text):
            return reference_counts(counts_of(text, "--reference"), events, columns)
        return reference_counts(text, events, columns, threshold)
