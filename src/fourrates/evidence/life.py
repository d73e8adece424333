"""The life of a drift. An alarm opens it, a second look confirms or withdraws it, and it ends.

The kernel stops when there is something to decide, either enough evidence for a change or the result of a look. This
module decides. :data:`LIFE` is all of it as a table; the code below looks its transitions up there, the tests follow
it, and the documentation prints it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fourrates.evidence.alternatives import SIZES
from fourrates.evidence.layout import RECENT, FourRatesRules
from fourrates.evidence.report import (
    Alarm,
    Moved,
    dispersion_of,
    events_of,
    level_of,
    normal_of,
    now_of,
    read_alarm,
    read_episode,
    read_shift,
    write_episode,
)
from fourrates.evidence.rules import LEAST_HISTORY
from fourrates.findings import Condition, Direction, Drift, Finding, Kind, RateChange, Share
from fourrates.kernel.evidence import NUMBERS
from fourrates.record import ALARMED, DRIFT, DRIFTED, LOOK, OPEN, SHIFT, WARNED

NORMAL: Condition = "normal"
UNCONFIRMED: Condition = "unconfirmed"
CONFIRMED: Condition = "confirmed"
RECOVERING: Condition = "recovering"
CONDITIONS = {NUMBERS[name.upper()]: name for name in (NORMAL, UNCONFIRMED, CONFIRMED, RECOVERING)}
ALONE = NUMBERS["ALONE"]
EVIDENCE = "total", "evidence", "age"  # of the lanes of a part of a record
FOUND = 0.5  # of a look's weights follow the alarm's evidence, the rest the usual weights
AWAY = 0.3  # of its move; a rate nearer to normal than this counts as back
WIDER = 1.4  # an interval that is quoted when a look decides is of observations whose number it chose


class Step(NamedTuple):
    """The next state of a rate, and the finding to report."""

    condition: Condition
    finding: Kind | None


# The states of a rate, and its events, such as an alarm that names it, a decision of the look at it, or a person's.
LIFE: dict[tuple[Condition, str], Step] = {
    (NORMAL, "alarm"): Step(UNCONFIRMED, "drift"),
    (NORMAL, "alarm, normal unknown"): Step(NORMAL, "drift"),
    (NORMAL, "alarm, improved"): Step(NORMAL, None),  # of a model that keeps learning
    **{(away, "alarm, further away"): Step(UNCONFIRMED, "drift") for away in (UNCONFIRMED, CONFIRMED, RECOVERING)},
    (RECOVERING, "alarm, away again"): Step(CONFIRMED, None),
    **{(away, "alarm, towards normal"): Step(RECOVERING, None) for away in (UNCONFIRMED, CONFIRMED, RECOVERING)},
    **{(away, "may be back"): Step(RECOVERING, None) for away in (UNCONFIRMED, CONFIRMED)},
    (UNCONFIRMED, "look supports it"): Step(CONFIRMED, "confirmation"),
    **{(away, "look refutes it"): Step(NORMAL, "withdrawal") for away in (UNCONFIRMED, CONFIRMED)},
    **{(away, "look says normal"): Step(NORMAL, "recovery") for away in (UNCONFIRMED, CONFIRMED, RECOVERING)},
    (RECOVERING, "look says nearer"): Step(CONFIRMED, "improvement"),
    (RECOVERING, "look says as before"): Step(CONFIRMED, None),
    **{(away, "accepted"): Step(NORMAL, "acceptance") for away in (UNCONFIRMED, CONFIRMED, RECOVERING)},
}
DECISIONS = {
    NUMBERS["CONFIRM"]: "look supports it",
    NUMBERS["WITHDRAW"]: "look refutes it",
    NUMBERS["WITHDRAW_ALL"]: "look refutes it",
    NUMBERS["RETURN"]: "may be back",
    NUMBERS["RECOVER"]: "look says normal",
    NUMBERS["IMPROVE"]: "look says nearer",
    NUMBERS["STAY"]: "look says as before",
}


class Life:
    """One stream at a moment of decision, which changes its record and reports `findings`."""

    def __init__(self, rules: FourRatesRules, names: Sequence[str], memory: npt.NDArray[np.uint8]) -> None:
        self._rules, self._names, self._memory = rules, names, memory
        self._records: Any = memory.view(rules.layout)  # one
        self._record = self._records[0]

    @property
    def open(self) -> Drift | None:
        """The drift that opened the episode."""
        return read_episode(self._rules, self._record, self._names)

    def condition(self, c: int) -> Condition:
        """Of a recall."""
        return CONDITIONS[int(self._record["look"]["condition"][c])]

    def settle(self, state: int) -> list[Finding]:
        """The findings of the last event, by the kernel's reason to stop."""
        record = self._record
        observed = int((record["recall"]["last"] == np.uint32(int(record["shared"]["taken"]) % 2**32)).argmax())
        decision = self._rules.decision(self._memory, observed) if state & LOOK else NUMBERS["NONE"]
        shifts = [read_shift(self._rules, record)] if state & SHIFT else []
        findings: list[Finding] = []
        if state & DRIFT:
            alarm = read_alarm(self._rules, record, self._memory)
            findings += self._alarm(alarm)
            if observed in (change.cls for change in alarm.moved):  # a look that begins again decides nothing
                decision = NUMBERS["NONE"]
        if state & SHIFT:  # not before, as an alarm may be for both together
            self._restart_mix()
        if decision != NUMBERS["NONE"]:
            findings += self._decided(observed, decision)
        return [*findings, *shifts]

    # An alarm -------------------------------------------------------------------------------------------------

    def _alarm(self, alarm: Alarm) -> list[Finding]:
        """Report a drift with enough evidence, and look at it."""
        record, rules, opening = self._record, self._rules, self.open
        happenings = {change.cls: self._happening(change, alarm) for change in alarm.moved}
        steps = {c: LIFE[self.condition(c), happening] for c, happening in happenings.items()}
        drifted = [change for change in alarm.moved if steps[change.cls].finding == "drift"]
        drift = None
        if drifted:
            opens = opening is None and any(steps[change.cls].condition != NORMAL for change in drifted)
            target = record if opens else record.copy()
            known = not rules.hold or "alarm, normal unknown" not in happenings.values()
            write_episode(rules, target, alarm, drifted, known)
            further = "alarm, further away" in happenings.values()
            drift = read_episode(rules, target, self._names, opening, further)
            if not record["head"]["events"] & np.uint64(ALARMED):  # the first of its period
                record["shared"]["proof"] = 0.0
            record["shared"]["proof"] += all(steps[change.cls].condition == NORMAL for change in drifted)
            record["head"]["events"] |= np.uint64(DRIFTED | ALARMED | (OPEN if opens else 0))
        self._restart_evidence()
        for change in alarm.moved:
            self._move(change, happenings[change.cls], steps[change.cls].condition, alarm)
        return [] if drift is None else [drift]

    def _happening(self, change: Moved, alarm: Alarm) -> str:
        """The alarm's name for one of the recalls that moved."""
        look, c = self._record["look"], change.cls
        if away := int(self._record["recall"]["moved"][c]):
            if change.way != away:
                return "alarm, towards normal"
            if self.condition(c) != RECOVERING:
                return "alarm, further away"
            level = int(look["away_ones"][c]) / max(int(look["away_n"][c]), 1)
            return "alarm, further away" if away * (change.after.value - level) > 0 else "alarm, away again"
        if self._rules.learning and change.way > 0:
            return "alarm, improved"
        history = given = float(look["given"][c])
        if not self._rules.keeps_reference(self._record, c):
            history += level_of(self._record, c)[0] - change.n
        unknown = history < LEAST_HISTORY or (alarm.started == 0 and not given)
        return "alarm, normal unknown" if unknown or not self._rules.hold else "alarm"

    def _move(self, change: Moved, happening: str, condition: Condition, alarm: Alarm) -> None:
        """Set the state of a recall that moved. Its new level begins with the next event, as an alarm exaggerates."""
        recall, look, c = self._record["recall"], self._record["look"], change.cls
        if condition == RECOVERING:
            self._look_at_return(c, alarm.started)
        elif condition == CONFIRMED:  # it was recovering, and no longer is
            self._begin_level(c)
            self._set_condition(c, CONFIRMED)
            look["settled"][c] = 1
        elif condition == UNCONFIRMED:
            self._keep_proof(c)
            if happening == "alarm" and not self._rules.keeps_reference(self._record, c):
                self._freeze_normal(change)
            self._set_level(c, 0, 0)
            look["expected"][c] = 0.0
            recall["moved"][c] = change.way
            self._look_at_drift(c, alarm if happening == "alarm" else None)
        else:
            self._set_level(c, 0, 0)
            look["given"][c] = look["ones"][c] = 0
            self._forget_confusions(slice(c, c + 1))

    def _freeze_normal(self, change: Moved) -> None:
        """Keep the observations up to the start as normal."""
        look = self._record["look"]
        known, right = map(round, level_of(self._record, change.cls))
        n = min(max(round(known - change.n), 0), known)
        ones = min(max(round(right - change.right), 0, n - (known - right)), n, right)
        look["normal_n"][change.cls], look["normal_ones"][change.cls] = n, ones

    def _look_at_drift(self, c: int, alarm: Alarm | None) -> None:
        """Look at a recall that moved by the lanes of its alarm, or alone if it moved further."""
        look, way = self._record["look"], int(self._record["recall"]["moved"][c])
        direction = ALONE if alarm is None or alarm.direction is None else alarm.direction
        weights = self._rules.look_weights(self._memory, c, way, direction)
        if alarm is not None:
            found = np.zeros(SIZES)
            found[: alarm.weights.size] = alarm.weights
            weights = FOUND * found + (1 - FOUND) * weights
        look["direction"][c], look["weight"][c] = direction, weights
        look["settled"][c] |= self.condition(c) in (CONFIRMED, RECOVERING)
        look["away_n"][c] = look["away_ones"][c] = look["returned"][c] = 0
        self._set_condition(c, UNCONFIRMED)

    def _look_at_return(self, c: int, started: int) -> None:
        """A moved recall may have recovered since event `started`."""
        recall, look = self._record["recall"], self._record["look"]
        if self.condition(c) == RECOVERING:  # the look under way continues
            return
        self._keep_proof(c)
        most = 2**32 - 1
        away, right = map(round, level_of(self._record, c))
        look["away_n"][c], look["away_ones"][c] = (away, right) if away <= most else (most, most * right // away)
        self._set_condition(c, RECOVERING)
        self._begin_level(c)
        look["weight"][c] = self._rules.look_weights(self._memory, c, int(recall["moved"][c]), ALONE, self._far(c))
        look["returned"][c] = min(max(started + 1 - int(self._record["episode"]["at"]), 0), 2**32 - 1)

    def proof(self) -> float:
        """The alarms since the period began, each times the evidence of its look; one on average if nothing changed."""
        return float(self._record["shared"]["proof"]) + sum(map(self._proof_of, range(len(self._record["counts"]))))

    def _proof_of(self, c: int) -> float:
        """The share of a recall in that, as an alarm may name all of them. A little-known normal proves little."""
        look, classes = self._record["look"][c], len(self._record["counts"])
        if not self._record["recall"]["moved"][c] or look["settled"] or self.condition(c) == RECOVERING:
            return 0.0
        proof = float(self._rules.support(self._memory, c)[1])
        return (proof if normal_of(self._record, c)[0] >= self._rules.least_known else min(proof, 1.0)) / classes

    def _keep_proof(self, c: int) -> None:
        """The look at a recall ends, or begins again."""
        self._record["shared"]["proof"] += self._proof_of(c)

    def _far(self, c: int) -> float:
        """In log-odds, how far from normal a recovering recall still counts as moved, a part of its move."""
        look, moved = self._record["look"][c], int(self._record["recall"]["moved"][c])
        known, right = normal_of(self._record, c)
        edge = (right + 0.5) / (known + 1) + moved * float(self._rules.tolerances[c])
        away = (float(look["away_ones"]) + 0.5) / (float(look["away_n"]) + 1)
        far, near = (math.log(rate / (1 - rate)) for rate in (away, min(max(edge, 1e-9), 1 - 1e-9)))
        return max(AWAY * abs(far - near), 1e-6)

    def _set_condition(self, c: int, condition: Condition) -> None:
        self._record["look"]["condition"][c] = NUMBERS[condition.upper()]

    # A decision -----------------------------------------------------------------------------------------------

    def _decided(self, c: int, decision: int) -> list[Finding]:
        """The look at a recall has reached a decision."""
        happening, look = DECISIONS[decision], self._record["look"]
        step = LIFE[self.condition(c), happening]
        if happening == "may be back":
            age = float(look["back_age"][c]) / max(float(look["back"][c]), 1e-30)
            self._look_at_return(c, events_of(self._record) - round(min(age, 1e15)))
            return []
        concerned = [c]
        if decision == NUMBERS["WITHDRAW_ALL"]:
            concerned = self._together(c)
        elif decision == NUMBERS["CONFIRM"]:
            concerned = [k for k in self._together(c) if k == c or self._is_confirmed_too(k)]
        back, still_away = step.condition == NORMAL, happening in ("look says nearer", "look says as before")
        findings = [] if step.finding is None else [self._finding(step.finding, concerned, back)]
        for k in concerned:
            if back:
                self._back_to_normal(k)
            else:
                self._set_condition(k, step.condition)
                look["settled"][k] |= still_away
        self._close_if_all_normal()
        return findings

    def _together(self, c: int) -> list[int]:
        """The recalls that moved together with this one, and share its look."""
        record = self._record
        look, direction = record["look"], record["look"]["direction"][c]
        same = (record["recall"]["moved"] != 0) & (look["direction"] == direction) & (look["settled"] == 0)
        same &= look["condition"] != NUMBERS["RECOVERING"]
        return [c] if direction == ALONE else np.flatnonzero(same).tolist()

    def _is_confirmed_too(self, c: int) -> bool:
        known, _ = normal_of(self._record, c)
        own = self._rules.support(self._memory, c)[1]
        return self.condition(c) == UNCONFIRMED and known >= self._rules.least_known and own >= 1

    def _finding(self, kind: Kind, concerned: Sequence[int], back: bool) -> Finding:
        """Report the state of these recalls, and whether it makes them normal again."""
        opening, at = self.open, events_of(self._record) - 1
        assert opening is not None
        started = opening.started if all(self._record["look"]["opened"][concerned]) else None
        if kind in ("recovery", "improvement"):
            look, since = self._record["look"][concerned], int(self._record["episode"]["at"]) - 1
            started = min(since + int(look["returned"].max()), at) if look["away_n"].all() else None
        changes = tuple(self._change(kind, c) for c in concerned)
        closes = back and {*concerned} >= {*np.flatnonzero(self._record["recall"]["moved"]).tolist()}
        return Finding(kind=kind, at=at, changes=changes, started=started, about=opening, closes=closes)

    def _change(self, kind: Kind, c: int) -> RateChange:
        """A recall before and after, by the look that decided."""
        record, rules = self._record, self._rules
        recall, look = record["recall"][c], record["look"][c]
        dispersion, way = dispersion_of(recall), int(recall["moved"])
        n, ones = now_of(record, c)
        known, right = normal_of(record, c)
        before, after = Share.of(right, known, dispersion), Share.of(ones, n, WIDER * dispersion)
        if kind in ("recovery", "improvement"):
            before, way = Share.of(int(look["away_ones"]), int(look["away_n"]), dispersion), -way
            if before.n and after.n:  # of few observations the estimates may go the other way
                way = -1 if after.value < before.value else 1
            statistic = rules.returning(self._memory, c)
        else:
            statistic = (min if kind == "withdrawal" else max)(rules.support(self._memory, c))
        bounds = {"withdrawal": rules.withdraw, "recovery": rules.recover}
        direction: Direction = "down" if way < 0 else "up"
        bound = bounds.get(kind, rules.confirm)
        return RateChange(self._names[c], direction, statistic, bound, None, after.n, before=before, after=after)

    def _back_to_normal(self, c: int) -> None:
        """Resume from the old normal, without the observations since the alarm."""
        recall, look, recent = self._record["recall"], self._record["look"], self._record["recent"][c]
        n, ones = int(recall["n"][c]), int(recall["ones"][c])
        kept = min(n, RECENT)  # the latest from now on; older ones do not show the rate now
        recent["n"] = recent["ones"] = 0
        recent["last_n"], recent["last_ones"] = kept, round(ones * kept / max(n, 1))
        if self._rules.sampled:
            sample = self._record["sample"][c : c + 1]
            sample["recent_n"] = sample["recent_ones"] = 0
            sample["last_n"], sample["last_ones"] = (sample[name] * kept / max(n, 1) for name in ("n", "ones"))
        self._begin_level(c, int(look["normal_n"][c]), int(look["normal_ones"][c]))
        recall["moved"][c] = 0
        given, ones, opened = (look[name][c].item() for name in ("given", "ones", "opened"))
        look[c] = 0
        look["given"][c], look["ones"][c], look["opened"][c] = given, ones, opened

    def _set_level(self, c: int, n: float, ones: float) -> None:
        """Set the level of a recall to these observations and right ones."""
        if self._rules.sampled:
            self._record["sample"]["n"][c], self._record["sample"]["ones"][c] = n, ones
            most = min(math.ceil(n), events_of(self._record))
            n, ones = most, most if ones >= n else int(most * ones / n)
        self._record["recall"]["n"][c], self._record["recall"]["ones"][c] = n, ones

    def _begin_level(self, c: int, n: int = 0, ones: int = 0) -> None:
        """Set the level of a recall to these observations from now on; evidence against the old one is void."""
        recall, look, shared = self._record["recall"], self._record["look"], self._record["shared"]
        self._set_level(c, n, ones)
        look["expected"][c] = 0.0
        self._clear(recall[c : c + 1])
        look["back"][c] = look["back_age"][c] = 0.0
        shared["own"] = recall["total"].sum(dtype=np.float64)
        self._clear_shared()

    def _close_if_all_normal(self) -> None:
        record = self._record
        if record["recall"]["moved"].any():
            return
        record["head"]["events"] &= ~np.uint64(OPEN)
        record["look"]["opened"] = 0
        for name in {"confusion", "change", "episode", "swap"} & {*record.dtype.names}:
            record[name] = 0
        self._zero("joint", "shares")

    # A person decides -----------------------------------------------------------------------------------------

    def accept(self, reference: Sequence[Any] | None = None, force: bool = False) -> Finding | None:
        """Make the level normal, or that of a new reference (observations and right ones, by class)."""
        record, finding = self._record, None
        classes = len(record["counts"])
        now = [now_of(record, c) for c in range(classes)]
        if record["episode"]["at"]:
            few = [c for c in range(classes) if now[c][0] < LEAST_HISTORY]
            if few and reference is None and not force:
                n, rate = now[few[0]][0], self._names[few[0]]
                raise ValueError(
                    f"{rate}: {n:.0f} observations since the alarm are too few to be normal; wait for {LEAST_HISTORY}, "
                    "give a reference, or accept with force=True"
                )
            finding = self._finding("acceptance", np.flatnonzero(record["recall"]["moved"]).tolist(), back=True)
        elif reference is None:
            return None
        for c in range(classes):
            self._keep_proof(c)
        self._restart_evidence(latest=False)
        look = record["look"]
        for c in range(classes):
            self._set_level(c, *(now[c] if reference is None else (0, 0)))
            record["recall"]["moved"][c] = 0
            look[c] = 0
            if reference is not None:
                look["given"][c], look["ones"][c] = reference[0][c], reference[1][c]
        self._close_if_all_normal()
        self._forget_confusions(slice(None))
        return finding

    # Forgetting ------------------------------------------------------------------------------------------------

    def _restart_evidence(self, latest: bool = True) -> None:
        """Clear the evidence and the counts since the alarm; rates stay known under "hold", dispersion always."""
        record = self._record
        recall, look = record["recall"], record["look"]
        record["head"]["since"] = 0
        record["head"]["events"] &= ~np.uint64(WARNED)
        record["counts"][:] = 0
        if self._rules.sampled:
            record["sample"]["volume"] = 0.0
        if latest:
            record["recent"] = 0
            if self._rules.sampled:
                record["sample"][["recent_n", "recent_ones", "last_n", "last_ones"]] = 0
        self._clear(recall)
        recall["last"] = 0
        look["back"] = look["back_age"] = 0.0
        self._zero("shared", "taken", "own", "residual")
        self._clear_shared()
        self._clear_confusions()
        if not self._rules.hold:
            for c in range(len(recall)):
                self._set_level(c, 0, 0)
            look["given"] = look["ones"] = 0
            self._restart_mix()
            self._forget_confusions(slice(None))

    def _clear(self, recall: Any) -> None:
        """Clear the evidence that these recalls moved; their bases are updated next."""
        recall[["next_refresh_n", "row", "n_since", "correct_since", *EVIDENCE]] = 0

    def _clear_shared(self) -> None:
        """Clear the evidence that several recalls moved, with a class-mix shift or without."""
        self._zero("shared", *EVIDENCE)
        self._zero("joint", *EVIDENCE)

    def _zero(self, part: str, *fields: str) -> None:
        """Set these fields to 0, in a part of the record that there may not be."""
        if part in self._records.dtype.names:
            self._records[part][[*fields]] = 0

    def _clear_confusions(self) -> None:
        """Clear the evidence that a class is predicted as another more often."""
        if self._rules.watch_confusions:
            cells = self._record["cell"]
            observed = cells["hits"].diagonal().copy()
            cells["evidence"] = cells["pair"] = 0.0
            cells["last"] = cells["pair_n"] = observed[:, None]
            cells["pair_m"] = observed
            cells["began"] = 0

    def _forget_confusions(self, classes: slice) -> None:
        """Forget the confusions of these classes."""
        if self._rules.watch_confusions:
            self._record["cell"][classes] = 0
            self._clear_confusions()

    def _restart_mix(self) -> None:
        """Restart the class mix; dispersion is kept."""
        self._zero("mix", "n", "ones", "next_refresh_n", *EVIDENCE)
        self._zero("joint", *EVIDENCE)
