"""Data problems that reject no row but change the meaning of the findings.

Missing labels, times that run backwards, a threshold no score reaches, a class that never appears. None of these is an
error. :class:`DataWarnings` notices them while reading and describes each in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.batch import Batch
    from fourrates.events.door import Reading
    from fourrates.labels import Labels

NEVER = np.iinfo(np.int64).min  # before any time; an unknown one as a number
DEVIATIONS = 3.5  # of the number of labels from the expected one


class DataWarnings:
    """Warnings about the events of a source."""

    def __init__(self) -> None:
        self.unlabelled = 0  # rows that were skipped because the true label was missing
        self._decimal_comma: str | None = None
        self._drawn = np.zeros((4, 2))  # by prediction, labelled, expected, their variance, all rows
        self.lowest, self.highest = np.inf, -np.inf  # score
        self._unseen: tuple[set[int], set[int]] | None = None  # true and predicted classes not seen yet
        self.backwards = 0  # times that are earlier than the one before them in their segment
        self.largest_step = np.timedelta64(0, "us")  # back
        self._first_step = ""
        self._latest = np.array([NEVER])  # time of each segment

    def add_scores(self, scores: npt.NDArray[np.float64], with_comma: str | None) -> None:
        """Note scores; `with_comma` is the first one written with a decimal comma."""
        self._decimal_comma = self._decimal_comma or with_comma
        known = scores[np.isfinite(scores)]
        if known.size:
            self.lowest = min(self.lowest, float(known.min()))
            self.highest = max(self.highest, float(known.max()))

    def add_drawn(self, reading: Reading) -> None:
        """Count labelled rows, and how many the sampling probabilities let expect."""
        if reading.drawn is None or reading.preds is None:
            return
        labelled = np.ones(reading.size, np.bool_) if reading.bad.kept is None else reading.bad.kept
        probability = reading.drawn.pairs[:, 0].astype(np.float64)
        for code in (0, 1):
            here = (reading.preds == code) & (probability > 0)
            own = probability[here]
            self._drawn[:, code] += labelled[here].sum(), own.sum(), (own * (1 - own)).sum(), own.size

    def _labelled_otherwise(self, labels: Labels) -> str | None:
        """A warning if labelling departs from the draw; a file of drawn rows alone cannot show that."""
        labelled, expected, variance, rows = self._drawn
        only_drawn = labelled.sum() > rows.sum() / 2 > expected.sum()
        if only_drawn or labelled.sum() == rows.sum():
            return None
        if (np.abs(labelled - expected) <= DEVIATIONS * np.sqrt(variance) + 1).all():
            return None
        counts = ", ".join(
            f"{n:,.0f} of predicted {label}, not {most:,.0f} as expected"
            for label, n, most in zip(labels.values, labelled, expected, strict=False)
        )
        return (
            f"labels are not those that were drawn: {counts}. If some are still missing, wait for them; if they depend "
            "on the outcome (complaints, chargebacks), neither rates nor budget hold"
        )

    def add(self, batch: Batch, classes: int) -> None:
        if self._unseen is None:
            self._unseen = {*range(classes)}, {*range(classes)}
        for unseen, codes in zip(self._unseen, (batch.truths, batch.preds), strict=True):
            if unseen:
                unseen -= {code for code in unseen if (codes == code).any()}
        if batch.times is not None:
            self._note_order(batch, batch.times)

    def _note_order(self, batch: Batch, times: npt.NDArray[np.datetime64]) -> None:
        """Count backward steps in time within each segment."""
        micros, rows, keys = times.astype("M8[us]", copy=False).view(np.int64), batch.rows, batch.keys
        known = micros != NEVER
        if not known.all():
            micros, rows, keys = micros[known], rows[known], None if keys is None else keys[known]
        if not micros.size:
            return
        if keys is not None:
            more = max(int(keys.max()) + 1 - self._latest.size, 0)
            self._latest = np.append(self._latest, np.full(more, NEVER))
        in_order = micros[0] >= self._latest.max() and (micros[1:] >= micros[:-1]).all()
        begins: Any = 0  # where a segment begins
        if keys is not None and not in_order:
            order = np.argsort(keys, kind="stable")
            micros, rows, keys = micros[order], rows[order], keys[order]
            begins = np.append(True, keys[1:] != keys[:-1])
        latest = self._latest.copy()
        if keys is None:
            self._latest[0] = micros[-1]
        else:
            self._latest[keys] = micros  # of several times of a segment the last one is kept
        if in_order:
            return
        before = np.append(NEVER, micros[:-1])
        before[begins] = latest[0 if keys is None else keys[begins]]
        back = np.flatnonzero(micros < before)
        if not back.size:
            return
        if not self.backwards:
            first = back[rows[back].argmin()]
            step = np.array([micros[first], before[first]]).astype("M8[us]").astype("M8[s]")
            earlier, later = (str(time).replace("T", " ") for time in step)
            self._first_step = f"{batch.source}, row {int(rows[first]):,} ({earlier} after {later})"
        self.backwards += back.size
        self.largest_step = max(self.largest_step, np.timedelta64(int((before - micros)[back].max()), "us"))

    def sentences(self, labels: Labels, threshold: float | None) -> dict[str, str]:
        """A sentence for each warning, by topic; `threshold` is None without scores."""
        warnings = {}
        if self._decimal_comma is not None:
            number = self._decimal_comma.replace(",", ".")
            warnings["comma"] = f"scores have a decimal comma: {self._decimal_comma!r} is read as {number}"
        if self.backwards:
            times = "once, in" if self.backwards == 1 else f"{self.backwards:,} times, first in"
            warnings["order"] = (
                f"times run backwards {times} {self._first_step}. Events are taken in the order of the rows; sort them "
                f"by time if they happened in another"
            )
        if (otherwise := self._labelled_otherwise(labels)) is not None:
            warnings["labelled"] = otherwise
        if self._unseen is None:
            return warnings
        truths, preds = self._unseen
        if len(truths) == len(labels.values) - 1:
            warnings["truth"] = (
                f"every true label is {_only(labels, truths)!r}, so nothing is known of the other classes"
            )
        if len(preds) == len(labels.values) - 1:
            warnings["pred"] = self._one_prediction(_only(labels, preds), threshold)
        return warnings

    def _one_prediction(self, only: Any, threshold: float | None) -> str:
        if threshold is None:
            return f"every prediction is {only!r}; is this the right column (--pred)?"
        if self.highest < threshold:
            reached = f"no score reaches the threshold {threshold:g}, the highest is {self.highest:g}"
        else:
            reached = f"every score reaches the threshold {threshold:g}, the lowest is {self.lowest:g}"
        return f"{reached}: every prediction is {only!r}; set --threshold"


def _only(labels: Labels, unseen: set[int]) -> Any:
    return next(label for code, label in enumerate(labels.values) if code not in unseen)


def skipped(rows: int, missing: int, unlabelled: int) -> str | None:
    """A sentence about skipped rows, if there are any."""
    if not missing:
        return None
    if missing == unlabelled:
        return f"{missing:,} of {rows:,} rows skipped: no label"
    what = []
    if unlabelled:
        what.append(f"{unlabelled:,} {'has' if unlabelled == 1 else 'have'} no label")
    if other := missing - unlabelled:
        what.append(f"{other:,} {'is' if other == 1 else 'are'} bad")
    return f"{missing:,} of {rows:,} rows skipped: {', '.join(what)}"


def explain_all_missing(sources: Sequence[str], rows: int, unlabelled: int) -> str:
    """Why there is nothing to watch."""
    where = ", ".join(sources)
    if rows and unlabelled == rows:
        return f"{where}: none of {rows:,} rows has a label; if labels arrive later, name their file with --labels-from"
    return f"{where}: no row has both a label and a prediction"
