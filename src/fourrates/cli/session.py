"""Shared by `detect` and `watch`: create a watch, or resume one from a state that fits the options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.budget.words import is_duration, run_length
from fourrates.cli import options as opt
from fourrates.cli.errors import checked
from fourrates.detectors import FourRates
from fourrates.frames import PeekedBatches, new_watch
from fourrates.io import Columns, InputError
from fourrates.watch import Watch

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.detectors import Detector
    from fourrates.io import Events
    from fourrates.labels import Labels


def resumed(saved: bytes, path: Path | None, trace: Callable[[Detector], Any] | None = None) -> Watch:
    """Load the watch of a state; errors name its file."""
    try:
        return Watch.from_bytes(saved, trace)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def open_watch(
    resumed: Watch | None,
    events: Events,
    data: opt.Data,
    chosen: opt.Chosen,
    state: Path | None,
    *,
    threshold: float | None,
    times: npt.NDArray[np.datetime64] | None,
    before: Mapping[str, str | None],
    trace: Callable[[Detector], Any] | None = None,
    begun: PeekedBatches | None = None,
) -> Watch:
    """The requested watch; `before` has the options saved with the state."""
    counts = None
    if chosen.reference is not None and chosen.reference != before.get("reference"):
        named = Columns(data.truth, data.pred, data.score, by=data.by)
        counts = opt.reference_of(chosen.reference, events, named, threshold)
    if resumed is not None:
        asked = chosen.asked()
        other = any(asked[name] not in (None, before.get(name)) for name in opt.NAMING)
        _check_same(resumed, chosen.spec(data.stratum) if other else None, events.labels, counts, state)
        if chosen.arl is not None:
            _change_budget(resumed, chosen.arl, before.get("arl"))
        return resumed
    spec = chosen.spec(data.stratum, begun, bool(events.columns.drawn))
    with checked():
        return new_watch(
            spec.kind,
            events.labels,
            counts,
            trace,
            parameters=spec.parameters,
            budget=chosen.arl,
            times=times,
            say=opt.say,
            name="--budget",
        )


def _check_same(watch: Watch, spec: opt.Spec | None, labels: Labels, reference: Any, path: Path | None) -> None:
    """Raise if the detector, classes or references asked for differ from those of the state."""
    kept = watch.detector
    chosen = spec or opt.spec(opt.DEFAULT)
    if chosen.kind is FourRates and isinstance(kept, FourRates):  # parameters not given stay
        stays = {name: kept.parameters[name] for name in ("tolerance", "learning", "strata", "sampled")}
        chosen = replace(chosen, parameters=stays | dict(chosen.parameters))
    wanted = kept
    if spec is not None or reference is not None or labels.values != kept.labels.values:
        arl = None if "arl" in chosen.parameters else kept.parameters.get("arl")
        if reference is None and (own := kept.parameters.get("reference")) is not None:
            reference = np.array(own)
        counts = None if isinstance(reference, dict) else reference
        with checked():
            wanted = opt.make_detector(chosen, labels, None if arl is None else str(arl), None, counts, quiet=True)
    same = type(kept) is type(wanted) and _settings(kept) == _settings(wanted)
    if isinstance(reference, dict):
        asked = Watch(wanted, references=reference)
        same = same and asked.has_references_of(watch)
    elif reference is not None and watch.references is not None:
        same = False
    if not same:
        raise InputError(f"{path} was saved with {kept!r}; only --budget can be changed: leave out the other options")


def _settings(detector: Detector) -> dict[str, Any]:
    return {name: value for name, value in detector.parameters.items() if name != "warn"}


def _change_budget(watch: Watch, asked: str, before: str | None) -> None:
    """Change the budget. A budget in time uses the volume so far, but stays the same if equal to `before`."""
    with checked():
        if before is not None and run_length(asked, 1.0, "--budget") == run_length(before, 1.0, "--budget"):
            return
    seconds = None
    if watch.first_time is not None and watch.last_time is not None:
        seconds = float((watch.last_time - watch.first_time) / np.timedelta64(1, "s"))
    rate = watch.events / seconds if seconds else None
    with checked():
        arl = run_length(asked, rate, "--budget")
        kept = watch.detector.parameters.get("arl")
        if kept is not None and arl != kept:
            watch.set_budget(arl)
            volume = "" if rate is None or not is_duration(asked) else f" at {86_400 * rate:,.0f} events a day"
            opt.say(f"budget: one false alarm in {arl:,.0f} events{volume}; it was one in {kept:,.0f}")
