"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import fourrates.detectors
from fourrates.cli.commands import argument, option, together
from fourrates.cli.errors import Stopped, checked
from fourrates.detectors import Detector
from fourrates.io import MISSING, Batch, Columns, Events, InputError, Missing, read
from fourrates.names import printable

DATA, DETECTOR, OUTPUT = "What to read", "Which detector", "What to write"

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
    option("--time", section=DATA, metavar="COLUMN", help="Column of times, ISO 8601 or epoch; guessed if not given."),
)
by = option("--by", section=DATA, metavar="COLUMN", help="Column that tells streams apart, such as a model's name.")
classes = together(
    option("--labels", section=DATA, metavar="A,B,...", help="The classes, the positive one of two last; 0,1."),
    option("--positive", section=DATA, metavar="LABEL", help="The positive one of two labels."),
    option(
        "--missing",
        section=DATA,
        type=click.Choice(MISSING),
        default="skip",
        help="Rows without a label: count and skip them, or stop.",
    ),
)
DEFAULT = "LFR"
detector = option(
    "--detector",
    "-d",
    section=DETECTOR,
    metavar="DETECTOR",
    help="Name, or name with parameters: 'LFR(decay=0.98, sides=\"down\")'; LFR.",
)
arl = option(
    "--arl",
    section=DETECTOR,
    metavar="N",
    help="False alarms you can live with, instead of a level: 100000 (events between two) or '1 per 30 days'.",
)
json = option("--json", section=OUTPUT, is_flag=True, help="Write JSON instead of a table.")


def say(text: str) -> None:
    """Tell the person something, on the standard error."""
    print("\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)


def several(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> from fourrates.cli.options import several
    >>> several(1, "drift"), several(2000, "event")
    ('1 drift', '2,000 events')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# The data ---------------------------------------------------------------------------------------------------


def labels_of(text: str | None) -> list[Hashable]:
    """The labels that `--labels` names; numbers where all of them are numbers."""
    if text is None:
        return [0, 1]
    words = [word.strip() for word in text.split(",")]
    if "" in words or len(words) < 2:
        raise InputError(f"--labels {text!r}: at least two labels, separated by commas")
    try:
        return [int(word) for word in words]
    except ValueError:
        return list(words)


def label_of(text: str | None, labels: list[Hashable]) -> Hashable:
    """The label that `--positive` names."""
    return next((label for label in labels if str(label) == text), text)


def events_of(
    files: Any,
    *,
    truth: str | None,
    pred: str | None,
    score: str | None,
    threshold: float | None,
    time: str | None,
    by: str | None,
    labels: list[Hashable],
    positive: Hashable,
    missing: Missing,
) -> Events:
    """What the options of the data stand for."""
    with checked():
        return read(
            files,
            columns=Columns(truth, pred, score, time, by),
            labels=labels,
            positive=positive,
            threshold=threshold,
            missing=missing,
            say=say,
        )


def started(events: Events, files: Sequence[str]) -> tuple[Batch, Iterator[Batch]]:
    """The first batch, and the others."""
    batches = events.ahead()
    try:
        first = next(batches, None)
    except KeyboardInterrupt:
        raise Stopped("stopped before the first events were read") from None
    if first is None:
        raise InputError(f"{', '.join(files)}: no row has both a label and a prediction")
    return first, batches


# The detector -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spec:
    """A detector as named on the command line: LFR, LFR(decay=0.98), river.ADWIN(delta=0.01)."""

    text: str
    kind: type[Any]
    parameters: Mapping[str, Any]

    @property
    def foreign(self) -> bool:
        """Whether it is another library's, fed with right or wrong instead of the pair."""
        return not issubclass(self.kind, Detector)

    def make(self, labels: list[Hashable], positive: Hashable, **more: Any) -> Any:
        """Make it, for these labels."""
        data = {} if self.foreign else {"labels": labels, "positive": positive}
        with checked():
            return self.kind(**{**data, **self.parameters, **more})


def known() -> dict[str, type[Detector]]:
    """The detectors by name."""
    exported = {name: getattr(fourrates.detectors, name) for name in fourrates.detectors.__all__}
    return {
        name: kind
        for name, kind in exported.items()
        if isinstance(kind, type) and issubclass(kind, Detector) and kind is not Detector
    }


def spec(text: str) -> Spec:
    """Read the name of a detector, with or without parameters.

    Examples
    --------
    >>> from fourrates.cli.options import spec
    >>> spec("lfr(decay=(0.9, 0.98))").make([0, 1], None).parameters["decay"]
    [0.9, 0.98]
    >>> spec("LFR(speed=3)")
    Traceback (most recent call last):
    ...
    fourrates.io.InputError: LFR has no parameter 'speed'; it has decay, warn, detect, arl, sides, null, correction
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
            raise InputError(
                f"{name if '.' in name else kind.__name__} has no parameter {parameter!r}; it has {theirs}"
            )
    return Spec(text.strip(), kind, parameters)


def _kind(name: str) -> type[Any]:
    ours = {one.lower(): kind for one, kind in known().items()}
    if name.lower() in ours:
        return ours[name.lower()]
    if name.startswith("river."):
        return _river(name.removeprefix("river."))
    raise InputError(f"no detector {name!r}; there are {', '.join(known())}, and river.NAME where river is installed")


def _river(name: str) -> type[Any]:
    try:
        from river import drift
        from river.drift import binary
    except ImportError:
        raise InputError(f"river.{name} needs river: pip install river") from None
    # HDDM_A in one release, HDDMA in another
    names = {one.replace("_", "").lower(): (module, one) for module in (drift, binary) for one in module.__all__}
    module, exact = names.get(name.replace("_", "").lower(), (drift, ""))
    kind = getattr(module, exact, None)
    if not isinstance(kind, type):
        raise InputError(f"river has no detector {name!r} in river.drift or river.drift.binary")
    return kind


# False alarms -----------------------------------------------------------------------------------------------

UNITS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30.44 * 86_400,
    "year": 365.25 * 86_400,
}


def run_length(text: str, rate: float | None) -> float:
    """The events between two false alarms that `--arl` asks for; `rate` is events per second, if times are known.

    Examples
    --------
    >>> from fourrates.cli.options import run_length
    >>> run_length("100000", None)
    100000.0
    >>> run_length("1 per 30 days", rate=0.5)  # one event every two seconds
    1296000.0
    >>> run_length("2 per week", None)
    Traceback (most recent call last):
    ...
    fourrates.io.InputError: --arl '2 per week' needs a column of times (--time) to know how many events that is
    """
    number = r"\d[\d_,]*(?:\.\d+)?(?:[eE]\d+)?"
    form = re.fullmatch(rf"\s*(?:({number})\s+(?:per|in|every)\s+)?({number})?\s*([a-z]*)\s*", text)
    alarms, amount, unit = (form[1], form[2], form[3].removesuffix("s")) if form else (None, None, "?")
    if unit not in ("", "event", *UNITS) or (amount is None and unit == ""):
        raise InputError(f"--arl {text!r} is not written like 100000, '1 per 100000 events' or '1 per 30 days'")
    length = _amount(amount or "1") / _amount(alarms or "1")
    if unit in ("", "event"):
        return length
    if rate is None:
        raise InputError(f"--arl {text!r} needs a column of times (--time) to know how many events that is")
    return length * UNITS[unit] * rate


def _amount(text: str) -> float:
    value = float(text.replace(",", "").replace("_", ""))
    if not value > 0:
        raise InputError(f"--arl: {text} is not positive")
    return value


def event_rate(times: Any) -> float | None:
    """Events per second, from their times."""
    known_times = times[~np.isnat(times)] if times is not None else np.empty(0, "M8[us]")
    if known_times.size < 2:
        return None
    seconds = float((known_times.max() - known_times.min()) / np.timedelta64(1, "s"))
    return (known_times.size - 1) / seconds if seconds > 0 else None


def make_detector(
    chosen: Spec, labels: list[Hashable], positive: Hashable, arl: str | None = None, times: Any = None
) -> Detector:
    """The detector that `--detector` and `--arl` ask for."""
    if chosen.foreign:
        raise InputError(f"{chosen.text} is another library's; only compare can run it")
    if arl is None:
        return chosen.make(labels, positive)  # type: ignore[no-any-return]
    if "arl" not in inspect.signature(chosen.kind).parameters:
        raise InputError(f"--arl: {chosen.kind.__name__} takes no average run length; give it a level")
    if "arl" in chosen.parameters or "detect" in chosen.parameters:
        raise InputError(f"--arl and {chosen.text}: give the run length or the level, not both")
    rate = event_rate(times)
    length = run_length(arl, rate)
    if rate is not None and not re.search(r"event|^\s*[\d_,.eE]+\s*$", arl):
        say(f"{86_400 * rate:,.0f} events a day, so {arl!r} is one false alarm per {length:,.0f} events")
    return chosen.make(labels, positive, arl=length)  # type: ignore[no-any-return]
