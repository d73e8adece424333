"""Choose events to label, if you cannot label all, by a probability for each prediction and a repeatable draw.

A draw may depend on the prediction and the segment, but not on the truth, which is unknown. Then a step in the log-odds
of a recall is the same step among labelled events, and the false-alarm budget holds. So we may choose the probabilities
that find a fall soonest for a given number of labels.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fourrates.budget.levels import check_arl
from fourrates.checks import check_number
from fourrates.detectors.four_rates import confusion_counts, in_order_of_codes
from fourrates.detectors.sampling import A_DOUBLING, ODDS
from fourrates.join.ids import fingerprints
from fourrates.kernel.fingerprint import Hasher
from fourrates.labels import Labels, rate_names

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

RATIOS = 2.0 ** (
    np.arange(-(ODDS // 2), ODDS // 2 + 1) / A_DOUBLING
)  # of the two probabilities, as the kernel has them
FALL = math.log(2)  # in log-odds, for a guarded recall without a size; its errors double
OVERHEAD = 0.5  # nats that evidence for a fall needs beyond the budget, by simulation
COLUMNS = ("fall", "from", "to", "events", "drawn evenly")


class Delay(NamedTuple):
    """The expected delay until a fall is found.

    Attributes
    ----------
    segment : hashable
        The segment; None without segments.
    fall : str
        The recalls that fall.
    before, after : float
        That recall; if several fall together, the first.
    events : float
        Events of all kinds, labelled or not, from the fall to the alarm.
    evenly : float
        The delay if the same number of labels is drawn evenly.
    """

    segment: Hashable
    fall: str
    before: float
    after: float
    events: float
    evenly: float


class Draw(NamedTuple):
    """The events to label.

    Attributes
    ----------
    drawn : array of bool
        Whether to label each event.
    probability : array of shape (events, 2)
        The probability of drawing each event for each possible prediction, in the order of the labels:
        :meth:`fourrates.FourRates.update_many` needs it. Save it with the event.
    """

    drawn: npt.NDArray[np.bool_]
    probability: Floats


class LabelPlan:
    """Choose the events to label that find a fall soonest.

    Parameters
    ----------
    reference : K x K counts, pair of arrays, or mapping from segments to such
        The classifier as you shipped it, as for :class:`~fourrates.FourRates`, or its latest known state. Each segment
        gets its own probabilities and, if it has enough events, an equal number of labels.
    share : float, optional
        The share of events that can be labelled.
    per_day, events_per_day : float, optional
        The number of events that can be labelled a day, and of all events a day.
    guard : mapping from recalls to sizes, optional
        The falls to find: ``{"tnr": 0.02}`` is one of two points. By default, falls that double a recall's errors, for
        each recall and all together.
    labels, positive
        As for the detector.
    arl : float
        Of the detector, in labelled events; used for the delays.
    key : str
        Key of every draw. Keep it secret if those who choose ids must not choose the events to label.

    Attributes
    ----------
    probabilities : dict
        By prediction; or by segment, and then by prediction.
    delays : list of Delay
        Expected delays.

    Examples
    --------
    >>> import fourrates as fr
    >>> plan = fr.LabelPlan([[8820, 180], [300, 700]], share=0.05)
    >>> print(plan)
    label 3.5 % of predicted 0, 20.1 % of predicted 1: 5.0 % of the events
    fall       from      to      events  drawn evenly
    tnr       0.980   0.961       6,938        21,029
    tpr       0.700   0.538      23,798        23,820
    together  0.980   0.961       5,734        12,282

    An id is drawn or not, however often you ask:

    >>> draw = plan.draw(["a2", "b2", "c2", "d2"], [1, 0, 1, 1])
    >>> draw.drawn, draw.probability[0].round(3)
    (array([False, False,  True, False]), array([0.035, 0.201]))
    """

    def __init__(
        self,
        reference: Any,
        *,
        share: float | None = None,
        per_day: float | None = None,
        events_per_day: float | None = None,
        guard: Mapping[str, float] | None = None,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
        arl: float = 100_000,
        key: str = "",
    ) -> None:
        self.labels = Labels(labels, positive)
        if len(self.labels.values) != 2:
            raise ValueError(f"labels {self.labels.given!r}: a plan is for two")
        self.arl, self.key = check_arl(arl), key
        self._hasher = Hasher(hashlib.blake2b(key.encode(), digest_size=16).digest())
        self.share, self.events_per_day = _share(share, per_day, events_per_day), events_per_day
        self.guard = None if guard is None else dict(guard)
        self._names = rate_names(self.labels.values)[:2]
        segments = reference if isinstance(reference, Mapping) else {None: reference}
        given = {name: confusion_counts(counts, self.labels) for name, counts in segments.items()}
        counts = {name: in_order_of_codes(cells, self.labels) for name, cells in given.items()}
        self.delays: list[Delay] = []
        self._chosen: dict[Hashable, Floats] = {}
        sizes = {name: float(cells.sum()) for name, cells in counts.items()}
        for (name, cells), part in zip(counts.items(), _parts(sizes, self.share), strict=True):
            self._choose(name, cells, part, sizes[name] / sum(sizes.values()))

    def _choose(self, segment: Hashable, counts: npt.NDArray[np.int64], share: float, size: float) -> None:
        """Set the probabilities of a segment from its share of the events and the share of them that is labelled."""
        falls = _falls(counts, self.guard, self._names)
        probabilities = _candidates(counts, share)
        information = np.array([_information(counts, fall, probabilities) for fall in falls])
        overall, own = (np.array([[part, part]]) for part in (self.share, share))
        gains = information / np.array([_information(counts, fall, own) for fall in falls])
        unhurt = gains.min(0) >= min(1.0, gains.min(0).max())  # no fall is found later than by an even draw
        best = int(np.where(unhurt, np.log(gains).mean(0), -np.inf).argmax())
        self._chosen[segment] = probabilities[best]
        for fall in falls:
            _, before, after = fall.moves[0]
            delays = (
                _delay(_information(counts, fall, pair)[0], self.arl, _labelled(counts, pair)[0]) / size
                for pair in (probabilities[[best]], overall)
            )
            self.delays.append(Delay(segment, fall.name, before, after, *delays))

    @property
    def probabilities(self) -> dict[Any, Any]:
        """By prediction; or by segment, and then by prediction."""
        values = self.labels.values
        chosen = {name: dict(zip(values, pair.tolist(), strict=True)) for name, pair in self._chosen.items()}
        return chosen[None] if [*chosen] == [None] else chosen

    def draw(self, ids: Any, preds: Any, segments: Any = None) -> Draw:
        """Draw the events to label.

        Parameters
        ----------
        ids : array, list, frame column
            Event ids. A retry draws the same ids; so does a new plan with the same key, unless a probability fell.
        preds : array of labels
            The predicted labels.
        segments : array, optional
            Segment of each event, for a plan with segments.
        """
        codes, marks = self.labels.encode(preds, "preds"), fingerprints(self._hasher, ids)
        if marks.size != codes.size:
            raise ValueError(f"ids has {marks.size} events, preds has {codes.size}")
        probability = self._both(codes.size, segments)
        drawn = marks["low"] * 2.0**-64 < probability[np.arange(codes.size), codes]
        return Draw(drawn, probability[:, [self.labels.values.index(label) for label in self.labels.given]])

    def _both(self, size: int, segments: Any) -> Floats:
        if (segments is None) != ([*self._chosen] == [None]):
            raise ValueError(
                "segments: this plan has none" if segments is not None else "this plan is by segment; give segments"
            )
        if segments is None:
            return np.repeat(self._chosen[None][None], size, 0)
        names = list(segments)
        if len(names) != size:
            raise ValueError(f"segments has {len(names)} events, preds has {size}")
        if (strange := next((name for name in names if name not in self._chosen), None)) is not None:
            raise ValueError(f"segment {strange!r} is not in the plan")
        return np.array([self._chosen[name] for name in names]).reshape(size, 2)

    def __str__(self) -> str:
        lines = []
        for name, pair in self._chosen.items():
            shares = ", ".join(
                f"{100 * p:.1f} % of predicted {label}" for label, p in zip(self.labels.values, pair, strict=True)
            )
            lines.append(f"{'' if name is None else f'{name}: '}label {shares}")
        lines[-1] += f": {100 * self.share:.1f} % of the events"
        lines.append(f"{COLUMNS[0]:<8}{COLUMNS[1]:>7}{COLUMNS[2]:>8}{COLUMNS[3]:>12}{COLUMNS[4]:>14}")
        for delay in self.delays:
            where = "" if delay.segment is None else f"  {delay.segment}"
            lines.append(
                f"{delay.fall:<8}{delay.before:>7.3f}{delay.after:>8.3f}{delay.events:>12,.0f}{delay.evenly:>14,.0f}{where}"
            )
        return "\n".join(lines)


def _share(share: float | None, per_day: float | None, events_per_day: float | None) -> float:
    if (share is None) == (per_day is None):
        raise ValueError("give share or per_day, one of them")
    if per_day is not None:
        if events_per_day is None:
            raise ValueError(f"per_day {per_day!r} needs events_per_day")
        share = min(check_number(per_day, "per_day") / check_number(events_per_day, "events_per_day"), 1.0)
    assert share is not None
    if not 0 < check_number(share, "share") <= 1:
        raise ValueError(f"share {share!r} is not above 0 and up to 1")
    return float(share)


def _parts(sizes: Mapping[Hashable, float], share: float) -> list[float]:
    """The labelled share of each segment, for equal numbers of labels if it has enough events."""
    of_all = np.array([*sizes.values()]) / sum(sizes.values())
    parts, left = np.zeros(of_all.size), share
    for i in np.argsort(of_all).tolist():
        parts[i] = min(left / (of_all.size - np.count_nonzero(parts)), of_all[i])
        left -= parts[i]
    return (parts / of_all).tolist()  # type: ignore[no-any-return]


class Fall(NamedTuple):
    """Guarded recalls that fall."""

    name: str
    moves: tuple[tuple[int, float, float], ...]  # of each its class, and the recall before and after


def _falls(counts: Any, guard: Mapping[str, float] | None, names: Sequence[str]) -> list[Fall]:
    rates = (counts.diagonal() + 0.5) / (counts.sum(1) + 1)
    after = rates / (rates + math.exp(FALL) * (1 - rates))
    for name, size in (guard or {}).items():
        if name not in names:
            raise ValueError(f"guard: {name!r} is not a recall; there are {', '.join(names)}")
        rate = rates[names.index(name)]
        if not 0 < check_number(size, "guard") < rate:
            raise ValueError(f"guard: {name} is {rate:.3f} and cannot fall by {size!r}")
        after[names.index(name)] = rate - size
    guarded = [names.index(name) for name in (names if guard is None else guard)]
    alone = [Fall(names[c], ((c, float(rates[c]), float(after[c])),)) for c in guarded]
    together = Fall("together", tuple(fall.moves[0] for fall in alone))
    return [*alone, together] if len(alone) > 1 else alone


def _labelled(counts: Any, probabilities: Floats) -> Any:
    """The share of events labelled with these probabilities."""
    return (counts.sum(0) / counts.sum() * probabilities).sum(-1)


def _candidates(counts: Any, share: float) -> Floats:
    """Pairs of probabilities that label this share, for each possible ratio."""
    first = share / _labelled(counts, np.column_stack([np.ones(ODDS), RATIOS]))
    pairs = np.column_stack([first, first * RATIOS])
    return pairs[(pairs <= 1 + 1e-12).all(1)].clip(max=1.0)


def _information(counts: Any, fall: Fall, probabilities: Floats) -> Floats:
    """Mean information of an event about a fall, in nats, for each pair of probabilities."""
    information = np.zeros(len(probabilities))
    for c, before, after in fall.moves:
        right, wrong = probabilities[:, c], probabilities[:, 1 - c]
        seen = [p * right + (1 - p) * wrong for p in (before, after)]
        old, new = before * right / seen[0], after * right / seen[1]
        divergence = new * np.log(new / old) + (1 - new) * np.log((1 - new) / (1 - old))
        information += counts[c].sum() / counts.sum() * seen[1] * divergence
    return information


def _delay(information: float, arl: float, labelled: float) -> float:
    gain = information / labelled  # per labelled event
    return (max(math.log(arl * gain), 0.0) + OVERHEAD) / information
