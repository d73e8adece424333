"""The current status, with open drifts and each rate since its alarm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fourrates.escaping import shortened
from fourrates.findings import CLASSES, Direction, Drift, RateState, Share, Status
from fourrates.watch.cost import ExtraCost

NAMED = 2  # rates in a sentence
SUPPORTED = 1 / 4  # of the evidence of an alarm; with 1 a third of the budget is used, with 1/4 what one pass uses
QUOTED = 15  # observations from which the interval of a moved rate is quoted


def several(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> from fourrates.watch.now import several
    >>> several(1, "drift"), several(2000, "recovery")
    ('1 drift', '2,000 recoveries')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def rate_in_words(rate: str) -> str:
    kind, _, label = rate.partition(":")
    return shortened(f"{kind} of {label}" if label else rate)


class Move(NamedTuple):
    """When and where one rate moved away from normal: found at event `at`, as a finding has the rest."""

    direction: Direction
    at: int
    started: int | None
    time: np.datetime64 | None
    started_time: np.datetime64 | None
    source: str | None
    row: int | None
    started_row: int | None


@dataclass(frozen=True, slots=True)
class OpenDrift:
    """A drift that is open.

    Attributes
    ----------
    drift : Drift
        The one that opened it, with its start and segment.
    rates : mapping from names to RateState
        The rates away from normal, each with `normal` and `now`, the rate since the alarm.
    cost : ExtraCost or None
        Its cost, if prices of errors were given.
    moves : mapping from names to Move
        When each rate moved, as rates may join a drift that is open.
    """

    drift: Drift
    rates: Mapping[str, RateState]
    cost: ExtraCost | None = None
    moves: Mapping[str, Move] = field(default_factory=dict)

    @property
    def segment(self) -> str | None:
        """The segment; None for the overall stream."""
        return self.drift.segment

    @property
    def confirmed(self) -> bool:
        """Whether the events since the alarm confirm at least one rate."""
        return any(state.state in ("confirmed", "recovering") for state in self.rates.values())

    @property
    def supported(self) -> bool:
        """Whether the drift is confirmed, or the evidence at the last event is still a quarter of the alarm's."""
        return self.confirmed or any((state.support or 0) >= SUPPORTED for state in self.rates.values())

    @property
    def harm(self) -> float:
        """Events since the alarm that normal would have had right; open drifts are ranked by this."""
        return sum(map(harm, self.rates.values()))

    @property
    def directions(self) -> dict[str, Direction]:
        """The direction of each rate that raised an alarm."""
        opening = {change.rate: change.direction for change in self.drift.changes}
        return opening | {rate: move.direction for rate, move in self.moves.items()}

    @property
    def worst_first(self) -> dict[str, RateState]:
        """The rates away from normal, the most harmful first."""
        return dict(sorted(self.rates.items(), key=lambda item: -harm(item[1])))

    @property
    def leading(self) -> Drift:
        """The drift with the place and the start of the move of its most harmful rate, which may have joined later."""
        move = self.moves.get(next(iter(self.worst_first), ""))
        if move is None or move.at == self.drift.at:
            return self.drift
        place = move._asdict()
        del place["direction"]
        return replace(self.drift, started_between=None, **place)

    def rates_in_words(self) -> str:
        """The rates away from normal, the most harmful first. Now, with its interval, and normal."""
        listed = [*self.worst_first.items()]
        words = [_in_words(rate, state, self.directions.get(rate)) for rate, state in listed[:NAMED]]
        more = f" and {several(len(listed) - NAMED, 'rate')} more" if len(listed) > NAMED else ""
        return " and ".join(words) + more

    @property
    def since(self) -> str:
        """When its most harmful rate moved, in words."""
        drift = self.leading
        if drift.started_time is not None:
            return f"since about {minute(drift.started_time)}"
        if drift.started is not None:
            return f"since about event {drift.started:,}"
        return f"found at event {drift.at:,}"

    def __str__(self) -> str:
        where = "" if (name := self.drift.where) is None else f"{shortened(name)}: "
        verdict = "confirmed" if self.confirmed else "not yet confirmed"
        cost = "" if self.cost is None else f", {self.cost}"
        return f"{where}{self.rates_in_words()}, {self.since} ({verdict}){cost}"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A version of the model and when it was first met, for pictures.

    Attributes
    ----------
    version : str
        Its name.
    time : datetime64 or None
        When its first prediction was made, if times are known.
    event : int
        Predictions of all versions before it.
    serves : bool
        Whether it made some of the last 500 to 1,000 predictions. Of several that did, the last one serves.
    """

    version: str
    time: np.datetime64 | None
    event: int
    serves: bool


@dataclass(frozen=True, slots=True)
class Now:
    """The current status.

    Attributes
    ----------
    status : {"stable", "warning", "drifted"}
        "drifted" while a drift is open somewhere.
    open : tuple of OpenDrift
        The open drifts, the overall stream first, then confirmed ones, then by harm.
    rates : mapping from names to RateState
        The rates of the overall stream; empty if there are segments only.
    warned : int
        Streams in a warning.
    events : int
        Events so far.
    segments : int or None
        How many there are; None for one stream alone.
    last_time : datetime64 or None
        The latest time.
    holds : bool
        Whether the detector keeps a drift open until it is over. Others have only their findings.
    deployments : tuple of Deployment
        The versions met, in order, if a column names them. In JSON: a list of
        ``{"version": "v2", "time": "2026-09-01T00:00:00Z", "event": 12345, "serves": true}``; findings have `version`.
    """

    status: Status
    open: tuple[OpenDrift, ...]
    rates: Mapping[str, RateState]
    warned: int
    events: int
    segments: int | None
    last_time: np.datetime64 | None
    holds: bool
    deployments: tuple[Deployment, ...] = ()

    @classmethod
    def together(cls, parts: Mapping[str, Now]) -> Now:
        """The status of several watches by name; one without segments becomes a segment of its name."""
        named = [
            replace(drift, drift=replace(drift.drift, segment=drift.segment or name))
            for name, now in parts.items()
            for drift in now.open
        ]
        warned = sum(now.warned for now in parts.values())
        return cls(
            status="drifted" if named else "warning" if warned else "stable",
            open=tuple(sorted(named, key=lambda drift: (not drift.confirmed, -drift.harm))),
            rates={},
            warned=warned,
            events=sum(now.events for now in parts.values()),
            segments=sum(now.segments or 1 for now in parts.values()),
            last_time=max((now.last_time for now in parts.values() if now.last_time is not None), default=None),
            holds=all(now.holds for now in parts.values()),
        )

    @property
    def confirmed(self) -> bool:
        """Whether an open drift is confirmed."""
        return any(drift.confirmed for drift in self.open)

    @property
    def unknown(self) -> bool:
        """Whether the status is unknown, as no recall of the overall stream has enough observations."""
        recalls = [state for state in self.rates.values() if state.normal is not None]
        known = any(state.now is not None and state.now.n >= state.enough for state in recalls)
        return self.status == "stable" and self.holds and bool(recalls) and not known

    def headline(self) -> tuple[str, str]:
        """The status in a word or two, and an explanation."""
        if self.open:
            worst = self.open[0]
            if self.segments is None:
                return "Drifted", str(worst)
            inside = [drift for drift in self.open if drift.segment is not None]
            count = f"{len(inside):,} of {several(self.segments, 'segment')} drifted"
            if worst.segment is None:
                most = f"; {count}, most of all {shortened(inside[0].segment or '')}" if inside else ""
                return "Drifted", f"{worst}{most}"
            return count, ("most of all " if len(inside) > 1 else "") + str(worst)
        if self.warned:
            where = "" if self.segments is None else f" in {self.warned:,} of {several(self.segments, 'segment')}"
            return "Warning", f"no drift yet, but a rate is close to an alarm{where}"
        if not self.holds:
            return "", ""
        if self.segments is not None and not self.rates:
            return "Stable", f"no drift is open in {several(self.segments, 'segment')}"
        recalls = [(rate, state) for rate, state in self.rates.items() if state.normal is not None]
        if self.unknown:
            return "Too few rows to say anything", "; ".join(_in_words(rate, state) for rate, state in recalls[:NAMED])
        return "Stable", "; ".join(_in_words(rate, state) for rate, state in recalls[:NAMED])

    def __str__(self) -> str:
        return ": ".join(part for part in self.headline() if part)

    def to_json(self, utc: bool = False) -> dict[str, Any]:
        """The status as JSON."""
        from fourrates.plain import finding_record, moment, state_record

        deployed = [
            {
                "version": deployed.version,
                "time": moment(deployed.time, utc),
                "event": deployed.event,
                "serves": deployed.serves,
            }
            for deployed in self.deployments
        ]
        return {
            "status": self.status,
            "open": [
                {
                    **finding_record(drift.drift, utc),
                    "confirmed": drift.confirmed,
                    "harm": round(drift.harm, 1),
                    **({} if drift.cost is None else {"cost": drift.cost.to_dict()}),
                    "now": {
                        rate: {**state_record(state), **_move_record(drift.moves.get(rate), utc)}
                        for rate, state in drift.rates.items()
                    },
                }
                for drift in self.open
            ],
            "now": {rate: state_record(state) for rate, state in self.rates.items()},
            **({"deployments": deployed} if deployed else {}),
        }


def _move_record(move: Move | None, utc: bool) -> dict[str, Any]:
    """The start of a rate's move for JSON, without what is not known."""
    from fourrates.plain import moment

    if move is None:
        return {}
    record = {"started": move.started, "started_time": moment(move.started_time, utc), "started_row": move.started_row}
    return {name: value for name, value in record.items() if value is not None}


def harm(state: RateState) -> float:
    """Events of one rate since the alarm that normal would have had right."""
    if state.normal is None or state.now is None or not state.normal.n or not state.now.n:
        return 0.0
    return (state.normal.value - state.now.value) * state.now.n


def _in_words(rate: str, state: RateState, direction: Direction | None = None) -> str:
    """A rate now, with its interval, and normal; until it is known, the direction of its move."""
    normal = "" if state.normal is None or not state.normal.n else f"normal {state.normal.value:.3f}"
    now = state.now
    if now is None or not now.n or now.n < state.enough:
        count = f"{0 if now is None else now.n:,} of about {state.enough:,} {CLASSES.get(rate, 'observations')}"
        if direction is not None and now is not None and now.n >= QUOTED:
            verb = "fell" if direction == "down" else "rose"
            aside = f"{count} needed; {normal}" if normal else f"{count} needed"
            return f"{rate_in_words(rate)} {verb} to between {now.lower:.3f} and {now.upper:.3f} ({aside})"
        moved = {"down": " fell, by how much is", "up": " rose, by how much is", None: " is"}[direction]
        aside = f"{count}; {normal}" if normal else count
        return f"{rate_in_words(rate)}{moved} not yet known ({aside})"
    return f"{rate_in_words(rate)} {share(now, normal)}"


def share(share: Share, aside: str = "") -> str:
    """A rate with its interval and observations: 0.758 (0.735 to 0.780 of 1,000)."""
    aside = f"; {aside}" if aside else ""
    return f"{share.value:.3f} ({share.lower:.3f} to {share.upper:.3f} of {share.n:,}{aside})"


def minute(time: np.datetime64) -> str:
    return str(time.astype("M8[m]")).replace("T", " ")
