"""The settings of a monitor, checked from the JSON of ``PUT /api/monitors/{name}``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np

from fourrates.budget.words import LEAST, UNITS, is_duration, run_length
from fourrates.detectors.four_rates import FourRates
from fourrates.labelplan import LabelPlan
from fourrates.labels import Labels
from fourrates.serve.errors import ApiError
from fourrates.watch.cost import prices

if TYPE_CHECKING:
    import numpy.typing as npt

Label = bool | int | float | Annotated[str, msgspec.Meta(max_length=200)]
Column = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Address = Annotated[str, msgspec.Meta(max_length=2_000)]
NAME = re.compile(r"(?!\.\.?$)[\w.-][\w .:@-]{0,127}")  # . and .. are no names in an address
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*")
FIXED = ("labels", "positive", "by", "max_wait", "sampled")  # fixed for a monitor, whose records depend on it
DEFAULT_ARL = 100_000.0


class AlertsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The channels of alerts, and further reasons for one."""

    channels: Annotated[list[Address], msgspec.Meta(max_length=20)] = []
    warnings: bool = False
    silent_after: str | None = None
    labels_overdue: str | None = None


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The counts of one segment, of one version of the model, or of a segment of a version."""

    counts: list[list[int]]
    by: dict[str, Label] = {}
    version: str | None = None


class PlanConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many labels there can be, and which falls they must find, as for fourrates.LabelPlan."""

    share: float | None = None
    per_day: float | None = None
    events_per_day: float | None = None
    guard: dict[str, float] | None = None


class MonitorConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of a monitor.

    `labels` are the classes, `positive` the positive one of two. Give `budget`, false alarms in words ("1 per month",
    "1 per 100000 events"), or `arl`, the events between two. `by` are the columns that make a segment. `reference` has
    the K x K counts of the classifier as it was shipped (of its first version), `references` those of segments (`by`)
    and of further versions (`version`). `max_wait` is how long a prediction waits for its label, `mix` the treatment of
    a class-mix shift, `threshold` the score from which on a prediction is positive.

    `tolerance` and `learning` are as for FourRates; `season`, "day" or "week", keeps normal by hour or by weekday.
    `cost` is the price of an error, by "miss" and "false alarm" or by true class. With `sampled`, only some events get
    a label, and each brings the probabilities it was drawn with, `label_probability` and `other_probability`. Or the
    monitor itself draws, by a `label_plan` for its reference.
    """

    labels: Annotated[list[Label], msgspec.Meta(max_length=256)] = msgspec.field(default_factory=lambda: [0, 1])
    positive: Label | None = None
    budget: str | None = None
    arl: Annotated[float, msgspec.Meta(ge=LEAST)] | None = None
    by: Annotated[list[Column], msgspec.Meta(max_length=8)] = []
    reference: list[list[int]] | None = None
    references: list[Reference] = []
    max_wait: str = "30 days"
    mix: Literal["report", "alarm", "ignore"] = "report"
    tolerance: float | dict[str, float] | None = None
    learning: bool = False
    season: Literal["day", "week"] | None = None
    cost: dict[str, float] = {}
    sampled: bool = False
    label_plan: PlanConfig | None = None
    threshold: float = 0.5
    alerts: AlertsConfig = AlertsConfig()

    def made_labels(self) -> Labels:
        return Labels(self.labels, self.positive)

    def made_detector(self, arl: float, **more: Any) -> FourRates:
        own = {name: getattr(self, name) for name in ("labels", "positive", "tolerance", "learning", "sampled")}
        return FourRates(arl, strata=self.season, **own, **more)

    def drawing(self) -> npt.NDArray[np.float32] | None:
        """The probability with which a prediction of each class is drawn for labelling; None without a plan."""
        if self.label_plan is None:
            return None
        given = msgspec.to_builtins(self.label_plan)
        plan = LabelPlan(self.reference, **given, labels=self.labels, positive=self.positive)
        return np.array([*plan.probabilities.values()], np.float32)

    def run_length(self, rate: float | None) -> float:
        """Events between two false alarms, at this number of events a second."""
        if self.arl is not None:
            return self.arl
        if self.budget is None or (rate is None and is_duration(self.budget)):
            return DEFAULT_ARL
        return min(max(run_length(self.budget, rate), LEAST), 1e12)

    @property
    def follows_rate(self) -> bool:
        """Whether the budget is one of time, so that it depends on how many events there are."""
        return self.arl is None and self.budget is not None and is_duration(self.budget)


def parse_config(body: bytes | dict[str, Any]) -> MonitorConfig:
    """The settings in a request, or an error that names the problem."""
    try:
        config = msgspec.convert(body if isinstance(body, dict) else msgspec.json.decode(body or b"{}"), MonitorConfig)
        check_config(config)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ApiError(422, "bad_config", str(error)[:500]) from None
    return config


def check_config(config: MonitorConfig) -> None:
    if config.arl is not None and config.budget is not None:
        raise ValueError("give `budget` or `arl`, not both")
    if len({*config.by}) < len(config.by):
        raise ValueError("`by` must name each column once")
    length = config.run_length(1.0)
    prices(config.cost, config.made_labels().values)
    config.made_detector(2 * length, reference=config.reference, mix=config.mix)
    if config.label_plan is not None and not (config.sampled and config.reference):
        raise ValueError("`label_plan` needs a `reference` and `sampled`")
    config.drawing()
    for own in config.references:
        config.made_detector(2 * length, reference=own.counts)
        if own.by.keys() not in (set(), {*config.by}) or not (own.by or own.version):
            raise ValueError(f"references: one has `by` {own.by!r}, and needs {config.by!r} or a `version`")
    for name, source in (("max_wait", config), ("silent_after", config.alerts), ("labels_overdue", config.alerts)):
        if (text := getattr(source, name)) is not None:
            seconds(text, name)


def seconds(text: str, name: str) -> float:
    """A length of time in words, in seconds.

    Examples
    --------
    >>> seconds("30 minutes", "silent_after")
    1800.0
    """
    form = DURATION.fullmatch(text.lower())
    if form is None or form[2] not in UNITS:
        raise ValueError(f"{name} {text!r:.80} is not written like '30 minutes' or '7 days'")
    length = float(form[1]) * UNITS[form[2]]
    if not 0 < length < 1e10:
        raise ValueError(f"{name} {text!r:.80} is not a length of time")
    return length


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        allowed = "letters, digits, and . _ - : @ or spaces within, at most 128 of them"
        raise ApiError(422, "bad_name", f"{name!r:.200} cannot be the name of a monitor: {allowed}")
    return name


def merged(config: MonitorConfig, change: bytes) -> MonitorConfig:
    """The settings after a PATCH, in which null restores a default."""
    try:
        fields = msgspec.json.decode(change, type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        raise ApiError(422, "bad_config", str(error)[:500]) from None
    old: dict[str, Any] = msgspec.to_builtins(config)
    if isinstance(fields.get("alerts"), dict):
        fields["alerts"] = old["alerts"] | fields["alerts"]
    if fields.get("arl") is not None:
        old["budget"] = None
    if fields.get("budget") is not None:
        old["arl"] = None
    kept = {name: value for name, value in (old | fields).items() if name not in fields or fields[name] is not None}
    new = parse_config(kept)
    check_change(config, new)
    return new


def check_change(old: MonitorConfig, new: MonitorConfig) -> None:
    changed = [name for name in FIXED if getattr(old, name) != getattr(new, name)]
    if (old.label_plan is None) != (new.label_plan is None):
        changed.append("label_plan")
    for name in changed:
        problem = f"{name} of a monitor cannot change: delete the monitor, or make another"
        raise ApiError(409, "fixed_setting", problem, {"field": name})
