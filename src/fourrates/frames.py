"""Frames and files to findings: :func:`detect` reads, chooses a budget, runs the detector and says what it found."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates import plain
from fourrates.budget.words import default_budget, event_rate, is_duration, run_length
from fourrates.detectors import Detector, FourRates
from fourrates.detectors.base import rate_names
from fourrates.detectors.four_rates import confusion_counts, in_order_of_codes
from fourrates.findings import Drift
from fourrates.io import Batch, Columns, Events, InputError, NoColumn, read
from fourrates.io.opening import pyarrow
from fourrates.io.remarks import explain_all_missing
from fourrates.run import Found, FoundShift, Run
from fourrates.run.dispersion import dispersions, in_words

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas  # type: ignore[import-untyped]
    from matplotlib.figure import Figure

    from fourrates.io import Joined
    from fourrates.labels import Labels
    from fourrates.run.trace import Trace

    Counts = npt.NDArray[np.int64]
    Say = Callable[[str], None]

RATED = 1 << 18  # events at the beginning, whose times say how many there are a day
SHOWN = 20  # findings in a summary
RATES = 6  # recalls of a reference that are told
FEW = 5  # streams named in a sentence
FEWER = 24  # times fewer points for the picture of each stream, where there are many


def detect(
    source: Any,
    truth: str | None = None,
    pred: str | None = None,
    score: str | None = None,
    threshold: float | None = None,
    by: str | None = None,
    time: str | None = None,
    id: str | None = None,
    positive: Hashable = None,
    labels: Iterable[Hashable] | None = None,
    reference: Any = None,
    arl: float | None = None,
    budget: str | float | None = None,
    detector: Detector | type[Detector] | None = None,
    labels_from: Any = None,
) -> Findings:
    """Find out whether a classifier drifted: a frame or files in, findings out.

    Parameters
    ----------
    source : frame, path, list of paths, pair of arrays
        What :func:`fourrates.io.read` takes: pandas, polars, Arrow and DuckDB frames, CSV, JSON lines, Parquet.
    truth, pred, score, time : str, optional
        Columns of true labels, of predictions or else of scores, and of times; guessed from common names.
    threshold : float, optional
        The score from which on the prediction is positive; 0.5.
    by : str, optional
        Column that tells streams apart, such as a model's name; each is watched on its own.
    id : str, optional
        Column that brings predictions and labels together, with `labels_from`.
    positive : label, optional
        The positive one of two labels; the second if not given.
    labels : iterable of labels, optional
        The classes; taken from the data if not given.
    reference : K x K counts, frame, path or pair of arrays, optional
        The classifier as you shipped it, on its validation set; with the same columns if it is a frame. With `by`, a
        frame or file that has this column gives each stream its own, and so does a mapping from streams to counts.
        Streams that are not in it, or lack a class there, are compared with their own past, and `said` names them.
    arl : float, optional
        Events between two false alarms.
    budget : str or float, optional
        The same in words: ``"1 per month"``, ``"one a quarter"``. If neither is given: one false alarm a month at the
        data's own volume, or one in 100,000 events without times.
    detector : Detector or class of detectors, optional
        Another one than :class:`~fourrates.FourRates`. A detector that is made already has its own labels and budget.
    labels_from : frame or path, optional
        Where the true labels are, if they come later and elsewhere; `source` then holds the predictions.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.streams import fraud
    >>> stream = fraud(seed=5)
    >>> found = fr.detect({"label": stream.y_true, "prediction": stream.y_pred, "time": stream.times})
    >>> print(found.summary())  # doctest: +SKIP
    """
    said: list[str] = []
    by_stream: dict[str, Counts] | None = None
    made = detector if isinstance(detector, Detector) else None
    if made is not None:
        for name, value in (("arl", arl), ("budget", budget), ("reference", reference), ("labels", labels)):
            if value is not None:
                raise ValueError(f"{name} and a detector that is made already: give {name} to the detector")
        labels, positive = made.parameters["labels"], made.parameters["positive"]
    source = reusable(source)
    asked = Columns(truth, pred, score, time, by, id)
    if labels is None and labels_from is None:
        labels = labels_in_memory(source, asked, threshold, positive, said.append)
    events: Events | Joined
    if labels_from is not None:
        from fourrates.io import joined

        late = Columns(truth=truth, id=id)
        columns = Columns(None, pred, score, time, by, id)
        events = joined(
            source,
            labels_from,
            columns=columns,
            label_columns=late,
            labels=labels,
            positive=positive,
            threshold=threshold,
            say=said.append,
        )
    else:
        events = read(source, columns=asked, labels=labels, positive=positive, threshold=threshold, say=said.append)
    begun = Begun(iter(events))
    if begun.is_empty:
        raise InputError(explain_all_missing(events.sources, events.rows, events.remarks.unlabelled))
    if made is None:
        kind = FourRates if detector is None else detector
        if not (isinstance(kind, type) and issubclass(kind, Detector)):
            raise TypeError(f"detector must be one of fourrates, such as LFR or LFR(), not {detector!r}")
        own = None if reference is None else reference_counts(reference, events, asked, threshold)
        one = None if isinstance(own, dict) else own
        made = make(kind, events.labels, arl=arl, budget=budget, reference=one, times=begun.times, say=said.append)
        by_stream = check_own_references(own, made)
    run = Run(made, tracer(many=by is not None), by_stream)
    found: list[Found] = []
    for batch in begun:
        found += run.take(batch, events.keys)
    if run.unreferred:
        said.append(without_reference(run))
    said += events.odd().values()
    return Findings(run, events, found, said)


class Begun:
    """Batches of which the first have been read: enough of them to know how many events there are a day.

    These are the first `RATED` events in every format, however large its batches are, so that "1 per month" is the same
    number of events for CSV and Parquet.

    Attributes
    ----------
    times : array of datetime64 or None
        When the first events happened.
    """

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._first: list[Batch] = []
        self._rest = batches
        size = 0
        for batch in batches:
            self._first.append(batch)
            size += batch.truths.size
            if batch.times is None or size >= RATED:
                break
        known = [batch.times for batch in self._first if batch.times is not None]
        self.times = np.concatenate(known)[:RATED] if known else None

    @property
    def is_empty(self) -> bool:
        """Whether there is no batch at all."""
        return not self._first

    def __iter__(self) -> Iterator[Batch]:
        while self._first:
            yield self._first.pop(0)
        yield from self._rest


def make(
    kind: type[Detector],
    labels: Labels,
    parameters: Mapping[str, Any] | None = None,
    *,
    arl: float | None = None,
    budget: str | float | None = None,
    reference: npt.NDArray[np.int64] | None = None,
    times: npt.NDArray[np.datetime64] | None = None,
    say: Say = lambda _: None,
    name: str = "budget",
) -> Detector:
    """Make a detector for some data: with the budget asked for, or the default one where it lives by a budget.

    Parameters
    ----------
    kind : class
        Which.
    labels : Labels
        The classes of the data.
    parameters : mapping, optional
        Further ones, as asked for.
    arl, budget : optional
        As for :func:`detect`.
    reference : array of counts, optional
        The classifier as it was shipped.
    times : array of datetime64, optional
        Of some events, from which their number a day is known.
    say : callable
        Told what the budget is, where it had to be chosen or worked out.
    name : str
        What the budget is called in messages.
    """
    accepted = inspect.signature(kind).parameters
    given = dict(parameters or {})
    given = {"labels": labels.given, "positive": labels.values[1] if len(labels.values) == 2 else None} | given
    if reference is not None:
        if "reference" not in accepted:
            raise ValueError(f"{kind.__name__} takes no reference; FourRates does")
        given["reference"] = reference
        say(_reference_in_words(reference, labels))
    if arl is not None and budget is not None:
        raise ValueError(f"arl {arl!r} and budget {budget!r}: give one of them")
    asked = arl if arl is not None else budget
    if asked is not None:
        if "arl" not in accepted:
            raise ValueError(f"{name}: {kind.__name__} takes no average run length; give it a level")
        if "arl" in given or "detect" in given:
            raise ValueError(f"{name}: the detector has a run length or a level of its own; give one of them")
        rate = event_rate(times)
        given["arl"] = run_length(asked, rate, name) if isinstance(asked, str) else asked
        if isinstance(asked, str) and rate is not None and is_duration(asked):
            say(f"{86_400 * rate:,.0f} events a day, so {asked!r} is one false alarm in {given['arl']:,.0f} events")
    elif kind is FourRates and "arl" not in given:
        given["arl"], sentence = default_budget(event_rate(times))
        say(sentence)
    return kind(**given)


def _reference_in_words(reference: npt.NDArray[np.int64], labels: Labels) -> str:
    """The recalls of a reference, so that counts given in another order than was meant are noticed."""
    counts = in_order_of_codes(reference, labels)
    recalls = zip(rate_names(labels.values), counts.diagonal(), counts.sum(axis=1), strict=False)
    told = [f"{name} {right / total:.3f} of {total:,}" for name, right, total in recalls]
    return "reference: " + ", ".join(told[:RATES]) + (" ..." if len(told) > RATES else "")


def reference_counts(
    reference: Any, events: Events | Joined, columns: Columns, threshold: float | None = None
) -> Counts | dict[str, Counts]:
    """The confusion counts of a reference: given as such, or as a frame or file with columns like those of the data.

    Where `columns.by` tells streams apart and the reference has that column too, counts of each stream, those left out
    that lack a class.
    """
    labels = events.labels
    numbers = isinstance(reference, list | np.ndarray) and not (
        isinstance(reference, list) and reference and isinstance(reference[0], str | os.PathLike)
    )
    if numbers or isinstance(reference, tuple):
        return confusion_counts(reference, labels)
    if isinstance(reference, Mapping) and all(
        isinstance(one, tuple) or np.ndim(one) == 2 for one in reference.values()
    ):
        return {str(name): confusion_counts(one, labels) for name, one in reference.items()}
    own = Columns(columns.truth, columns.guess, columns.score, by=columns.by)
    try:
        counts, keys = _counted(reference, own, labels, threshold)
    except NoColumn as error:
        if error.name != columns.by:
            raise
        counts, keys = _counted(reference, replace(own, by=None), labels, threshold)
    if not counts.any():
        raise InputError("the reference has no row with both a label and a prediction")
    order = [labels.values.index(label) for label in labels.given]
    counts = counts[:, order][:, :, order]
    if not keys:
        return confusion_counts(counts[0], labels)
    return {key: one for key, one in zip(keys, counts, strict=True) if one.sum(1).all()}


def _counted(
    reference: Any, columns: Columns, labels: Labels, threshold: float | None
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Counts by code, for each stream of a reference or for all as one, and the streams."""
    classes = len(labels.values)
    counts = np.zeros((1, classes, classes), np.int64)
    pairs = read(
        reference,
        columns=columns,
        labels=labels.given,
        positive=labels.values[1] if classes == 2 else None,
        threshold=threshold,
    )
    for batch in pairs:
        missing = max(len(pairs.keys) - len(counts), 0)
        counts = np.concatenate([counts, np.zeros((missing, classes, classes), np.int64)])
        keys = np.zeros(batch.rows.size, np.int64) if batch.keys is None else batch.keys
        np.add.at(counts, (keys, batch.truths, batch.guesses), 1)
    return counts, pairs.keys


def check_own_references(own: Counts | dict[str, Counts] | None, detector: Detector) -> dict[str, Counts] | None:
    """References by stream, if that is what they are, and the detector takes any."""
    if not isinstance(own, dict):
        return None
    if not isinstance(detector, FourRates):
        raise ValueError(f"{type(detector).__name__} takes no reference; FourRates does")
    return own


def without_reference(run: Run) -> str:
    """A sentence that names the streams that have no reference while others do."""
    names = run.unreferred
    listed = ", ".join(names[:FEW]) + (" ..." if len(names) > FEW else "")
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{len(names):,} of {len(run.streams):,} streams {verb} not in the reference, or a class of theirs is not: "
        f"compared with their own past ({listed})"
    )


def tracer(many: bool) -> Callable[[Detector], Trace]:
    """What follows the rates of a stream for pictures; more coarsely where there are many streams."""
    from fourrates.run.trace import POINTS, Trace

    return lambda detector: Trace(detector, POINTS // FEWER if many else POINTS)


def reusable(source: Any) -> Any:
    """A frame in a form that can be read twice; files and arrays are that already."""
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "columns"):
        return pyarrow("pyarrow").table(source)
    return source


def labels_in_memory(
    source: Any, columns: Columns, threshold: float | None, positive: Hashable, say: Say
) -> tuple[Hashable, ...] | None:
    """The labels of all rows of a frame; None for files and pipes, whose first rows must do."""
    paths = source if isinstance(source, list | tuple) else [source]
    is_file = bool(paths) and all(isinstance(one, str | os.PathLike) for one in paths)
    if is_file or isinstance(source, Iterator):
        return None
    said: list[str] = []
    probe = read(source, columns=columns, labels=None, positive=positive, threshold=threshold, say=said.append)
    probe.learn_labels(probe.tables())
    for sentence in said:
        if sentence.startswith("classes"):
            say(sentence)
    return probe.labels.given


class Findings:
    """What :func:`detect` found: drifts and what became of them, in order, to be looked at, kept, drawn or written.

    Iterating gives :class:`~fourrates.run.found.Found`: the stream, the drift, and where it stands in the data.

    Attributes
    ----------
    run : Run
        What ran: its `detector`, its `streams`.
    said : list of str
        What was guessed or chosen, in sentences.
    """

    def __init__(self, run: Run, source: Events | Joined, found: list[Found], said: list[str]) -> None:
        self.run, self.said = run, said
        self._source, self._found = source, found

    def __iter__(self) -> Iterator[Found]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self._found)

    def __getitem__(self, at: int) -> Found:
        return self._found[at]

    @property
    def drifts(self) -> list[Found]:
        """The drifts, without what became of them."""
        return [one for one in self._found if one.is_drift]

    @property
    def recoveries(self) -> list[Found]:
        """Where a rate that had moved was back at normal."""
        return [one for one in self._found if one.kind == "recovery"]

    @property
    def shifts(self) -> list[FoundShift]:
        """Where the true classes came in other shares than before."""
        return self.run.shifts

    @property
    def dispersion(self) -> dict[str, float]:
        """By recall, how much more it scatters than with independent events: over all streams, for FourRates."""
        return dispersions(self.run)

    @property
    def events(self) -> int:
        """Events read, in all streams."""
        return self.run.events

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can have."""
        labels, utc = self.run.detector.labels.values, self._source.utc
        return {
            **plain.about(self.run, self._source, self._found),
            "dispersion": {rate: plain.finite(one) for rate, one in self.dispersion.items()},
            "said": self.said,
            "drifts": [plain.as_record(one, utc, labels) for one in self._found],
            "shifts": [plain.shift_record(one, utc) for one in self.shifts],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with one row for each rate that moved."""
        import pandas

        frame = pandas.DataFrame(plain.rows(self._found, self._source.utc), columns=plain.COLUMNS)
        return frame if any(one.stream is not None for one in self._found) else frame.drop(columns="stream")

    def plot(self, stream: str | None = None) -> Figure:
        """Draw the rates of a stream over time; of the first that drifted if none is named."""
        from fourrates.plot import drawn

        return drawn(self.run, self._found, stream)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that shows it all: one HTML file, with nothing to fetch."""
        from fourrates import files
        from fourrates.report import page

        files.check_writable(path)
        files.write(path, page(self.run, self._source, self._found).encode())

    def headline(self) -> str:
        """How many drifts there are in how many events, and over which time."""
        text = plain.counted(one.kind for one in self._found)
        text += f" in {self.events:,} event{'' if self.events == 1 else 's'}"
        if self._source.columns.by is not None:
            text += f" of {len(self.run.streams):,} stream{'' if len(self.run.streams) == 1 else 's'}"
        run = self.run
        if run.first_time is not None and run.last_time is not None:
            first, last = (plain.moment(at, False, precise=False) for at in (run.first_time, run.last_time))
            text += f", {first} to {last}{' UTC' if self._source.utc else ''}"
        return text

    def summary(self) -> str:
        """What was found, and what was guessed or chosen on the way, in lines of text."""
        lines = [self.headline()]
        for one in self._found[:SHOWN]:
            lines.append(f"  {_line(one, self._source.utc)}")
            if isinstance(one.finding, Drift):
                lines += [f"    {change}" for change in one.finding.precisions]
        if (shortage := plain.last_shortage(self.run, self._found)) is not None:
            lines.append(shortage)
        if len(self._found) > SHOWN:
            lines.append(f"  ... and {len(self._found) - SHOWN:,} more")
        lines += [f"  {_named(one.stream)}{one.shift}" for one in self.shifts[:SHOWN]]
        if len(self.shifts) > SHOWN:
            lines.append(f"  ... and {len(self.shifts) - SHOWN:,} more shifts of the classes")
        return "\n".join([*lines, *self._correlated(), *self.said])

    def _correlated(self) -> list[str]:
        return [words] if (words := in_words(self.dispersion)) else []

    def __repr__(self) -> str:
        return f"<Findings: {self.headline()}>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """For notebooks: the headline, the rates that moved over time, and a table."""
        from fourrates.report.notebook import fragment

        shifts = [f"{_named(one.stream)}{one.shift}" for one in self.shifts[:SHOWN]]
        notes = [*shifts, *self._correlated(), *self.said]
        return fragment(self.headline(), self._found, self._source.utc, notes, self.run.traces)


def _named(stream: str | None) -> str:
    return "" if stream is None else f"{stream}: "


def _line(one: Found, utc: bool) -> str:
    when = plain.moment(one.at.time, utc, precise=False)
    return f"{_named(one.stream)}{'' if when is None else f'{when}, '}{one.finding}"
