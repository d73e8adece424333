"""Reports of a nightly run on events that are watched again each night, with more labels.

With other labels, evidence exceeds an alarm at other events, so reporting every alarm of every night means many looks
at the same data: up to twice the budget. A drift is reported when it is confirmed, or when its evidence at the *end*
of a night's data has not fallen far below that of an alarm. For a known rate that evidence is a martingale in the order
in which labels arrive, whatever their delays, so all nights together are one look (docs/mathematics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fourrates.findings import Drift, Finding
from fourrates.watch.streams import microseconds

ENDS = "withdrawal", "recovery", "acceptance"

if TYPE_CHECKING:
    from fourrates.watch.watch import Watch

    Episode = tuple[str | None, str | None, int]


def new_findings(watch: Watch, findings: Sequence[Finding], reported: dict[str, int]) -> list[Finding]:
    """The findings of a night to report; drifts that do not count yet are held back, also from `watch.now()`.

    `reported` has, by segment, version and kind, the time up to which findings were reported; it is updated.
    """
    opened = {episode: drift for episode, drift in map(_episode, findings) if drift is not None}
    supported = {_episode(finding)[0] for finding in findings if finding.kind == "confirmation"}
    there_now = {_episode(state.drift)[0]: state for state in watch.now().open if watch.holds}
    opened |= {episode: state.drift for episode, state in there_now.items()}
    supported |= {episode for episode, state in there_now.items() if state.supported}
    held = {
        episode
        for episode, drift in opened.items()
        if watch.holds and episode not in supported and _is_new(drift, reported)
    }
    watch.held = {episode[:2] for episode in held & there_now.keys()}  # an earlier one of a segment hides no later one
    # A drift that was held back may have been opened by events that are not watched again.
    there = {_episode(finding)[0] for finding in findings if isinstance(finding, Drift)}
    earlier = [drift for episode, drift in opened.items() if episode in supported - there]
    new = []
    for finding in (*earlier, *findings):
        episode = _episode(finding)[0]
        waits = finding.kind == "drift" and watch.holds and episode not in supported
        if episode in held or waits or not _is_new(finding, reported):
            continue
        new.append(finding)
        at = microseconds(finding.time)
        if at is not None:
            reported |= {about: max(at, reported.get(about, at)) for about in _about(finding)}
    return new


def _episode(finding: Finding) -> tuple[Episode, Drift | None]:
    drift = finding.drift
    return (finding.version, finding.segment, -1 if drift is None else drift.at), drift


def _about(finding: Finding) -> list[str]:
    drift = finding.kind == "drift"
    kinds = [f"{change.rate} {change.direction}" for change in finding.changes] if drift else [finding.kind]
    return [f"{finding.where or ''}\n{kind}" for kind in kinds]


def _is_new(finding: Finding, reported: dict[str, int]) -> bool:
    """Whether it began after all reported findings of the same rates, segment and version, as far as times are known.

    With more labels than before, an alarm may be a little sooner or later. After the reported end of a drift, an alarm
    is a new one, however early it may have started.
    """
    at, began = microseconds(finding.time), microseconds(finding.started_time)
    since = began if finding.kind == "drift" and began is not None else at
    if at is None or since is None:
        return True
    last = max(reported.get(subject, since - 1) for subject in _about(finding))
    ended = max(reported.get(f"{finding.where or ''}\n{kind}", since - 1) for kind in ENDS)
    return since > last or (finding.kind == "drift" and at > ended > last)
