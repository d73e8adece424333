"""A second layer behind a detector: more examples are waited for, and an alarm is confirmed or dismissed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fourrates.checks import check_number, check_whole

if TYPE_CHECKING:
    from fourrates.findings import Drift
    from fourrates.labels import Codes
    from fourrates.retrain.learner import Learner

    Examples = tuple[Any, Codes]  # rows and the codes of their labels

LEAST = 10  # examples on either side of an alarm


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the second layer said of an alarm.

    Attributes
    ----------
    drift : Drift
        The alarm.
    at : int
        The label at which the verdict came.
    confirmed : bool
        Whether the alarm stands.
    p_value : float
        How likely what was seen after the alarm is, if nothing changed; nan if the alarm could not be judged: then it
        stands.
    why : str
        What it is based on, in words.
    """

    drift: Drift
    at: int
    confirmed: bool
    p_value: float
    why: str

    @property
    def delay(self) -> int:
        """Labels between the alarm and the verdict: what the second layer costs."""
        return self.at - self.drift.at

    def __str__(self) -> str:
        what = "confirmed" if self.confirmed else "dismissed"
        return f"drift at {self.drift.at:,} {what} at {self.at:,}, p {self.p_value:.3f}: {self.why}"


class SecondLayer:
    """Judges an alarm by examples before and after it; a subclass says how.

    Attributes
    ----------
    window : int
        Examples on either side.
    level : float
        An alarm is confirmed if the p-value is at most this.
    """

    def __init__(self, window: int, level: float) -> None:
        self.window = check_whole(window, "window", least=LEAST)
        if not 0 < check_number(level, "level") < 1:
            raise ValueError(f"level {level!r} is not in (0, 1)")
        self.level = float(level)

    def begins(self, drift: Drift) -> int:
        """The first example of those after the alarm."""
        raise NotImplementedError

    def first_look(self, drift: Drift) -> int:
        """How many labels there must have been for the first verdict."""
        return self.begins(drift) + self.window

    def pause(self, waited: int) -> int:
        """How many labels later to look again, this many after the alarm, where there was no verdict."""
        return 1

    def p_value(self, learner: Learner, model: Any, before: Examples, after: Examples, seed: int) -> tuple[float, str]:
        """The p-value and what it is based on; an error if these examples cannot be judged."""
        raise NotImplementedError

    def test(
        self, learner: Learner, model: Any, before: Examples, after: Examples, drift: Drift, at: int
    ) -> Verdict | None:
        """Judge an alarm, or return None to be asked again after the next label; one that cannot be judged stands.

        Parameters
        ----------
        learner : Learner
            Learns models and asks them.
        model : classifier
            The one that serves.
        before, after : pairs of rows and codes
            The examples.
        drift : Drift
            The alarm.
        at : int
            The last label observed.
        """
        try:
            if before[1].size < LEAST:
                raise ValueError(f"only {before[1].size} examples before the drift")
            p_value, why = self.p_value(learner, model, before, after, drift.at)
        except Exception as error:  # of the model's own, too
            return Verdict(drift, at, True, float("nan"), f"it could not be judged ({error})")
        return Verdict(drift, at, p_value <= self.level, p_value, why)
