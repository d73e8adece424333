"""Frames and files to findings: :func:`detect` reads, chooses a budget, runs the detector and reports."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fourrates.budget.words import default_budget, event_rate, is_duration, run_length
from fourrates.detectors import Detector, FourRates
from fourrates.detectors.four_rates import confusion_counts, in_order_of_codes
from fourrates.detectors.seasons import SEASONS, Season, choose_season
from fourrates.events.door import STRATA, By
from fourrates.events.rows import Bad
from fourrates.io import Batch, Columns, Events, InputError, NoColumn, read
from fourrates.io.data_warnings import explain_all_missing
from fourrates.io.opening import pyarrow
from fourrates.labels import rate_names
from fourrates.result import Findings
from fourrates.watch import Watch

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.findings import Finding
    from fourrates.io.late import Order
    from fourrates.labels import Labels
    from fourrates.watch.trace import Trace

    Counts = npt.NDArray[np.int64]
    Say = Callable[[str], None]

AskedSeason = Literal["auto", "day", "week"]
CHOSEN_BY = ("times", "truths", "preds")  # of the first events, to choose their season
RATED = 1 << 18  # first events, whose times show how many there are a day
RATES = 6  # recalls of a reference that are reported
FEW = 5  # segments named in a sentence
FEWER = 8  # reduction of bins for pictures of many segments


class VersionReferences(dict[str, Any]):
    """References by version of the model, with counts by segment, or under None for all segments."""


def detect(
    source: Any,
    truth: str | None = None,
    pred: str | None = None,
    score: str | None = None,
    threshold: float | None = None,
    by: By = None,
    time: str | None = None,
    id: str | None = None,
    positive: Hashable = None,
    labels: Iterable[Hashable] | None = None,
    reference: Any = None,
    arl: float | None = None,
    budget: str | float | None = None,
    detector: Detector | type[Detector] | None = None,
    labels_from: Any = None,
    order: Order = "prediction",
    cost: Mapping[Any, float] | None = None,
    tolerance: float | Mapping[str, float] | None = None,
    learning: bool = False,
    season: AskedSeason | None = "auto",
    stratum: str | None = None,
    version: str | None = None,
    bad: Bad = "reject",
) -> Findings:
    """Find out from a frame or files whether a classifier drifted.

    Parameters
    ----------
    source : frame, path, list of paths, pair of arrays
        Any input of :func:`fourrates.io.read`, that is pandas, polars, Arrow and DuckDB frames, CSV, JSON lines,
        Parquet.
    truth, pred, score, time : str, optional
        Columns of true labels, of predictions or else of scores, and of times; inferred from common names.
    threshold : float, optional
        The lowest score that makes the prediction positive; 0.5 by default.
    by : str or list of str, optional
        Column that makes segments, such as a country or a model's name, or several; each is watched separately.
    id : str, optional
        Column that joins predictions and labels, with `labels_from`.
    positive : label, optional
        The positive one of two labels; the second if not given.
    labels : iterable of labels, optional
        The classes; taken from the data if not given.
    reference : K x K counts, frame, path or pair of arrays, optional
        The classifier as you shipped it, on its validation set; a frame has the same columns as the data. With `by`, a
        frame or file with that column gives each segment its own, and so does a mapping from segments to counts.
        Segments that are missing, or lack a class there, learn a baseline; `messages` names them. With `version`, a
        frame or file with that column gives each version its own; else it belongs to the first one.
    arl : float, optional
        Events between two false alarms.
    budget : str or float, optional
        The same in words: ``"1 per month"``, ``"one a quarter"``. The default is one false alarm a month at the data's
        own volume, or one in 100,000 events without times.
    detector : Detector or class of detectors, optional
        Replaces :class:`~fourrates.FourRates`. A detector instance already has its own labels and budget.
    labels_from : frame or path, optional
        Source of late true labels; `source` then has only the predictions.
    order : {"prediction", "arrival"}
        With `labels_from`, events in the order of their predictions, or in the order the pairs were completed.
    cost : mapping, optional
        The price of errors, ``{"miss": 120, "false alarm": 3}`` or by true class; open drifts then show their cost.
    tolerance, learning
        As for :class:`~fourrates.FourRates`. Ignore changes smaller than this; the model keeps learning.
    season : {"auto", "day", "week"} or None
        Whether to hold a normal for each hour of the day or each weekday. "auto" does so if the errors in the first
        full weeks or days show such a season; `messages` reports it.
    stratum : str, optional
        Column with the stratum of an event, a whole number from 0 to 23: each has its own normal.
    version : str, optional
        Column with the version of the model that predicted. Each has its own normal and its own drifts, however late
        its labels arrive (:class:`~fourrates.Watch`).
    bad : {"reject", "skip"}
        Whether a row that cannot be used is an error, or skipped and counted.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.streams import fraud
    >>> stream = fraud(seed=5)
    >>> found = fr.detect({"label": stream.y_true, "prediction": stream.y_pred, "time": stream.times})
    >>> print(found.summary())  # doctest: +SKIP
    """
    messages: list[str] = []
    if isinstance(detector, Detector):
        own = {"arl": arl, "budget": budget, "reference": reference, "labels": labels, "tolerance": tolerance}
        for name in (name for name, value in (own | {"learning": learning or None}).items() if value is not None):
            raise ValueError(f"{name} and a detector that is made already: give {name} to the detector")
        labels, positive = detector.parameters["labels"], detector.parameters["positive"]
    source = reusable(source)
    asked = Columns(truth, pred, score, time, by, id, stratum=stratum, version=version)
    if stratum is not None and labels_from is not None:
        raise ValueError("stratum and labels_from, but strata by a column need the labels beside it")
    choices: dict[str, Any] = {"positive": positive, "threshold": threshold, "bad": bad, "labels": labels}
    joining = {} if labels_from is None else {"order": order}
    events = open_events(source, asked, labels_from, on_message=messages.append, **choices, **joining)
    events.unwatched = deque()
    begun = PeekedBatches(events, iter(events))
    if begun.is_empty:
        raise InputError(explain_all_missing(events.sources, events.rows, events.warnings.unlabelled))
    trace = tracer(many=by is not None)
    if isinstance(detector, Detector):
        watch = Watch(detector, trace=trace)
    else:
        more = {"tolerance": tolerance, "learning": learning or None}
        watch = new_watch(
            FourRates if detector is None else detector,
            events,
            begun,
            trace,
            parameters={name: value for name, value in more.items() if value is not None},
            reference=reference,
            columns=asked,
            threshold=threshold,
            season=season,
            arl=arl,
            budget=budget,
            on_message=messages.append,
        )
    watch.set_cost(cost or {})
    findings = watched(watch, events, begun)
    if watch.without_reference:
        messages.append(without_reference(watch))
    messages += events.data_warnings().values()
    return Findings(watch, events, findings, messages)


def new_watch(
    kind: type[Detector],
    events: Events,
    begun: PeekedBatches | None,
    trace: Callable[[Detector], Trace] | None,
    **options: Any,
) -> Watch:
    """A watch with a new detector, possibly with a reference for each segment; options as for `new_detector`."""
    detector, references = new_detector(kind, events, begun, **options)
    if isinstance(references, VersionReferences):
        return Watch(detector, version_references=references, trace=trace)
    return Watch(detector, references=references, trace=trace)


def new_detector(
    kind: type[Detector],
    events: Events,
    begun: PeekedBatches | None = None,
    *,
    parameters: Mapping[str, Any],
    reference: Any = None,
    columns: Columns,
    threshold: float | None = None,
    season: AskedSeason | None = None,
    times: npt.NDArray[np.datetime64] | None = None,
    on_message: Say,
    **options: Any,
) -> tuple[Detector, dict[str, Counts] | None]:
    """A detector for these events, and references by segment or version if there are such; options as for `make`.

    The first events, `begun`, may choose its season. The reference has the same columns as the events.
    """
    if not (isinstance(kind, type) and issubclass(kind, Detector)):
        raise TypeError(f"detector must be one of fourrates, such as LFR or LFR(), not {kind!r}")
    counts = None if reference is None else reference_counts(reference, events, columns, threshold)
    keyed = counts if isinstance(counts, dict) else None
    if keyed is not None and kind is not FourRates:
        raise ValueError(f"{kind.__name__} takes no reference; FourRates does")
    own: dict[str, Any] = {"sampled": True} if events.sampled and kind is FourRates else {}
    if columns.stratum is not None:
        own["strata"] = STRATA
    elif season == "auto":
        is_free = kind is FourRates and not own and "strata" not in parameters
        chosen = begun.season() if is_free and begun is not None else None
        if chosen is not None:
            by = "hour" if chosen == "day" else "weekday"
            on_message(f"errors follow the {chosen}: normal is kept by {by} (season)")
            own["strata"] = chosen
    elif season in SEASONS:
        own["strata"] = season
    elif season is not None:
        raise ValueError(f"season {season!r} is not 'auto', 'day', 'week' or None")
    if begun is not None and times is None:
        times = begun.times
    whole = None if isinstance(counts, dict) else counts
    options |= {"reference": whole, "times": times, "on_message": on_message}
    made = make(kind, events.labels, {**parameters, **own}, **options)
    return made, keyed


def open_events(source: Any, columns: Columns, labels_from: Any = None, **options: Any) -> Events:
    """Read events with their labels, or with labels from a separate source; options as for `io.read`."""
    if labels_from is None:
        return read(source, columns=columns, **options)
    from fourrates.io import joined

    late = Columns(truth=columns.truth, id=columns.id)
    return joined(source, labels_from, columns=replace(columns, truth=None), label_columns=late, **options)


def watched(
    watch: Watch,
    events: Events,
    batches: Iterable[Batch],
    before: Callable[[int, list[Finding]], None] | None = None,
) -> list[Finding]:
    """Watch all batches; `before` is called with the number of each, and the findings so far.

    Predictions whose labels come from another source are watched as they are read. Their shifts are placed among the
    other findings by time, or first if times are not known.
    """
    findings: list[Finding] = []
    shifts: list[Finding] = []

    def watch_predictions() -> None:
        while events.unwatched:
            shifts.extend(watch.predict(events.unwatched.popleft(), events.keys, wait=events.label_wait))

    for number, batch in enumerate(batches):
        watch_predictions()
        if before is not None:
            before(number, findings)
        findings += watch.update(batch, events.keys)
    watch_predictions()
    if any(finding.time is None for finding in shifts + findings):
        return shifts + findings
    return [*merge(shifts, findings, key=attrgetter("time"))]


class PeekedBatches:
    """Batches with the first ones already read, to know how many events there are a day: `times`, None if unknown.

    These are the first `RATED` events in every format, whatever its batch size. So "1 per month" is the same number of
    events for CSV and Parquet. With late labels they are as many of the predictions as are labelled.
    """

    def __init__(self, events: Events, batches: Iterator[Batch]) -> None:
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
        predicted = getattr(events, "predicted", None)
        if size and predicted is not None:
            volume = sum(batch.truths.size if batch.volumes is None else batch.volumes.sum() for batch in self._first)
            first = predicted[:RATED]
            self.times = first[np.linspace(0, first.size - 1, round(first.size * size / volume)).astype(np.int64)]

    @property
    def is_empty(self) -> bool:
        """Whether there are no batches."""
        return not self._first

    def season(self) -> Season | None:
        """The season that the errors of the first events follow."""
        first = [batch for batch in self._first if batch.times is not None]
        if not first:
            return None
        times, truths, preds = (np.concatenate([getattr(batch, name) for batch in first]) for name in CHOSEN_BY)
        return choose_season(times[:RATED], truths[:RATED], preds[:RATED])

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
    on_message: Say = lambda _: None,
    name: str = "budget",
) -> Detector:
    """Make a detector for some data, with a given budget or the default one if it takes a budget.

    `times` of some events show their number a day; `name` is that of the budget in messages, which `say` receives.
    """
    accepted = inspect.signature(kind).parameters
    given = dict(parameters or {})
    given = {"labels": labels.given, "positive": labels.values[1] if len(labels.values) == 2 else None} | given
    if reference is not None:
        if "reference" not in accepted:
            raise ValueError(f"{kind.__name__} takes no reference; FourRates does")
        given["reference"] = reference
        on_message(_reference_in_words(reference, labels))
    if arl is not None and budget is not None:
        raise ValueError(f"arl {arl!r} and budget {budget!r}: give one of them")
    asked = arl if arl is not None else budget
    if asked is not None:
        if "arl" not in accepted:
            raise ValueError(f"{name}: {kind.__name__} takes no average run length; give it a level")
        if "arl" in given or "detect" in given:
            raise ValueError(f"{name}: the detector has a run length or a level already; give one of them")
        rate = event_rate(times)
        given["arl"] = run_length(asked, rate, name) if isinstance(asked, str) else asked
        if isinstance(asked, str) and rate is not None and is_duration(asked):
            daily = f"{86_400 * rate:,.0f} events a day"
            on_message(f"{daily}, so {asked!r} is one false alarm in {given['arl']:,.0f} events")
    elif kind is FourRates and "arl" not in given:
        given["arl"], sentence = default_budget(event_rate(times))
        on_message(sentence)
    for parameter in given:
        if parameter not in accepted:
            raise ValueError(f"{kind.__name__} takes no {parameter}; FourRates does")
    made = kind(**given)
    if isinstance(made, FourRates) and (words := made.tolerance_in_words()) is not None:
        on_message(words)
    return made


def _reference_in_words(reference: npt.NDArray[np.int64], labels: Labels) -> str:
    """The recalls of a reference, so that counts in a wrong order are noticed."""
    counts = in_order_of_codes(reference, labels)
    recalls = zip(rate_names(labels.values), counts.diagonal(), counts.sum(axis=1), strict=False)
    named = [f"{name} {right / total:.3f} of {total:,}" for name, right, total in recalls]
    return "reference: " + ", ".join(named[:RATES]) + (" ..." if len(named) > RATES else "")


def reference_counts(
    reference: Any, events: Events, columns: Columns, threshold: float | None = None
) -> Counts | dict[str, Counts]:
    """The confusion counts of a reference, given directly or as a frame or file with columns like those of the data.

    If `columns.by` makes segments and the reference has that column, counts by segment, without those that lack a
    class.
    """
    labels = events.labels
    numbers = isinstance(reference, list | np.ndarray) and not (
        isinstance(reference, list) and reference and isinstance(reference[0], str | os.PathLike)
    )
    if numbers or isinstance(reference, tuple):
        return confusion_counts(reference, labels)
    if isinstance(reference, Mapping) and all(
        isinstance(counts, tuple) or np.ndim(counts) == 2 for counts in reference.values()
    ):
        return {str(name): confusion_counts(counts, labels) for name, counts in reference.items()}
    own = Columns(columns.truth, columns.pred, columns.score, by=columns.by, version=columns.version)
    while True:
        try:
            counts = _counted(reference, own, labels, threshold)
            break
        except NoColumn as error:  # columns that it does not have
            if error.name not in (*own.by_names, own.version):
                raise
            own = replace(own, version=None) if error.name == own.version else replace(own, by=None)
    if not any(cells.any() for cells in counts.values()):
        raise InputError("the reference has no row with both a label and a prediction")
    order = [labels.values.index(label) for label in labels.given]
    found: dict[str | None, dict[str | None, Counts]] = {}
    for (version, segment), cells in counts.items():
        if segment is None or cells.sum(1).all():
            found.setdefault(version, {})[segment] = confusion_counts(cells[np.ix_(order, order)], labels)
    if own.version is not None:
        return VersionReferences({str(version): counts for version, counts in found.items()})
    whole = found.get(None, {})
    return whole[None] if None in whole else {str(segment): counts for segment, counts in whole.items()}


def _counted(
    reference: Any, columns: Columns, labels: Labels, threshold: float | None
) -> dict[tuple[str | None, str | None], Counts]:
    """Counts by code, for each version and segment of a reference, None if it does not distinguish them."""
    classes = len(labels.values)
    counts: dict[tuple[str | None, str | None], Counts] = {}
    pairs = read(
        reference,
        columns=columns,
        labels=labels.given,
        positive=labels.values[1] if classes == 2 else None,
        threshold=threshold,
    )
    for batch in pairs:
        none = np.zeros(batch.rows.size, np.int64)
        columns_of = [none if column is None else column for column in (batch.versions, batch.keys)]
        met, positions = np.unique(np.stack(columns_of), axis=1, return_inverse=True)
        cells = np.zeros((met.shape[1], classes, classes), np.int64)
        np.add.at(cells, (positions.ravel(), batch.truths, batch.preds), 1)
        for (version, key), own in zip(met.T.tolist(), cells, strict=True):
            names = (
                None if batch.versions is None else batch.version_names[version],
                None if batch.keys is None else pairs.keys[key],
            )
            counts[names] = counts.get(names, 0) + own
    return counts


def without_reference(watch: Watch) -> str:
    """A sentence that names segments without a reference, while others have one."""
    names = watch.without_reference
    listed = ", ".join(names[:FEW]) + (" ..." if len(names) > FEW else "")
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{len(names):,} of {len(watch.segments):,} segments {verb} not in the reference, or a class of theirs is not: "
        f"compared with their own past ({listed})"
    )


def tracer(many: bool) -> Callable[[Detector], Trace]:
    """Makes traces of segments for pictures, with fewer bins if there are many."""
    from fourrates.watch.trace import BINS, Trace

    return lambda detector: Trace(detector, BINS // FEWER if many else BINS)


def reusable(source: Any) -> Any:
    """A frame that can be read twice; files and arrays already can."""
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "columns"):
        return pyarrow("pyarrow").table(source)
    return source
