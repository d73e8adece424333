"""A watch for `detect` and `watch`, created or resumed from a state that fits the options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourrates.budget.words import DEFAULT_WORDS, is_duration, rate_between, run_length
from fourrates.cli import options as opt
from fourrates.cli.errors import checked
from fourrates.io import InputError
from fourrates.watch import Watch

if TYPE_CHECKING:
    from fourrates.cli.states import Checkpoint, Progress
    from fourrates.detectors import Detector

ENOUGH = 1_000  # events that show the volume
ALIKE = 1.25  # a budget in time is changed if the volume differs by more than this factor


def resumed(
    saved: Checkpoint | Progress,
    data: opt.Data,
    chosen: opt.Chosen,
    path: Path | None,
    trace: Callable[[Detector], Any] | None = None,
) -> Watch:
    """The watch of a state, with the budget asked for now; any other option must be the one it was begun with."""
    try:
        watch = Watch.from_bytes(saved.watch, trace)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for name, text in chosen.asked(data).items():
        before = saved.asked.get(name) or (opt.DEFAULT if name == "detector" else None)
        if name != "arl" and text not in (None, before):
            kept = f"{path} was saved with {watch.detector!r}"
            raise InputError(f"{kept}; only --budget can be changed: leave out the other options")
    _change_budget(watch, chosen.arl, saved.asked)
    return watch


def _change_budget(watch: Watch, asked: str | None, before: Mapping[str, str | None]) -> None:
    """Change the budget. One in time follows the volume so far, as the first night may be unlike the others."""
    words, now = before.get("arl"), watch.detector.parameters.get("arl")
    if now is None or (asked is None and "arl" in opt.spec(before.get("detector") or opt.DEFAULT).parameters):
        return
    rate = None
    if watch.first_time is not None and watch.last_time is not None:
        rate = rate_between(watch.events, watch.first_time, watch.last_time)
    with checked():
        same = asked is None or (words is not None and run_length(asked, 1.0) == run_length(words, 1.0))
        asked = asked or words or DEFAULT_WORDS
        in_time = is_duration(asked)
        if same and (not in_time or rate is None or watch.events < ENOUGH):
            return
        arl = run_length(asked, rate, "--budget")
        if arl == now or (same and 1 / ALIKE < arl / now < ALIKE):
            return
        watch.set_budget(arl)
    volume = "" if rate is None or not in_time else f" at {86_400 * rate:,.0f} events a day"
    opt.say(f"budget: one false alarm in {arl:,.0f} events{volume}; it was one in {now:,.0f}")
