"""How a record of evidence lies in memory, and which bytes from outside can be one; none are trusted unchecked."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.kernel.evidence import NUMBERS, PARTS, EvidenceRules
from fourrates.kernel.record import NUMBERS as HEAD_NUMBERS

SIZES, BLOCKS, LEVELS, UNITS, SMALLEST, PERIOD, RECENT, ODDS, ALONE, RECOVERING, USUAL = map(
    NUMBERS.__getitem__,
    ["SIZES", "BLOCKS", "LEVELS", "UNITS", "SMALLEST", "PERIOD", "RECENT", "ODDS", "ALONE", "RECOVERING", "USUAL"],
)
FLAGS, OPEN = HEAD_NUMBERS["FLAGS"], HEAD_NUMBERS["OPEN"]
NOTHING = 1e-37  # about the smallest float of four bytes; below, rounding loses evidence before its age
ROUNDED = 1 / (2 * UNITS) + 1e-3  # of an observation, by which a block may exceed what it holds


class FourRatesRules(EvidenceRules):
    """The rules of FourRates, which know how their records lie in memory, and which bytes can be one."""

    def __init__(self, classes: int, settings: dict[str, Any]) -> None:
        strata = 0 if settings["sampled"] else settings["strata"]
        watched = (settings[name] for name in ("watch_mix", "watch_joint", "watch_confusions"))
        self.layout = _layout(classes, strata, *watched)
        super().__init__(classes, settings | {"layout": self.layout})
        self.prior, self.lag, self.given_lag = (settings[name] for name in ("prior", "lag", "given_lag"))
        self.hold: bool = settings["hold"]
        self.learning: bool = settings["learning"]  # a recall that improves may
        self.tolerances: npt.NDArray[np.float32] = settings["tolerance"]  # by class, changes of less are ignored
        self.most = max(self.threshold, self.mix_threshold)
        self.table = table = settings["alternatives"]
        self.mix_steps = np.array(settings["mix"], np.float32)[:, 0]  # of the log-odds of the positive class, by lane
        self.joint_weights = np.array(settings["joint"], np.float32)[:, 1]  # over those of the shared lanes
        mix, joint = (np.array([weight for _, weight in settings[name]]) > 0 for name in ("mix", "joint"))
        recall, shared = ((table[:, :, i, 2] > 0).any((0, 1)) for i in range(2))
        self.watched = recall, shared, mix, np.tile(shared[:SIZES], 2) & joint  # lanes that ever have a weight

    def keeps_reference(self, record: Any, c: int) -> bool:
        """Whether normal is the reference alone, as the promise of a tolerance needs it fixed."""
        return bool(self.tolerances[c] > 0 and record["look"]["given"][c] > 0)

    def evidence(self, records: Any) -> npt.NDArray[np.float64]:
        """All evidence for a change, of each of many records."""
        found = np.frombuffer(records, self.layout)
        total = found["shared"]["own"] + found["shared"]["total"]
        return np.asarray(total + found["joint"]["total"] if self.watch_joint else total)

    def check(self, records: npt.NDArray[np.uint8]) -> None:
        """Raise ValueError unless each of these can be a record of the rules."""
        super().check(records)
        ones = np.asarray(records).view(self.layout)[:, 0]
        parts = [ones["recall"], ones["shared"][:, None]]
        more = (("mix", self.watch_mix), ("joint", self.watch_joint))
        parts += [ones[name][:, None] for name, watched in more if watched]
        with np.errstate(over="ignore", invalid="ignore"):
            for found in parts:
                self._check_numbers(found)
            self._check_counts(ones)
            self._check_evidence(ones, parts)
            self._check_looks(ones)
            self._check_strata(ones)
            self._check_episode(ones)
            if self.watch_confusions:
                self._check_confusions(ones)

    def _check_numbers(self, found: Any) -> None:
        """Check every part of a record alone."""
        for name in found.dtype.names:
            inner = found[name].dtype.names
            for value in [found[name]] if inner is None else [found[name][part] for part in inner]:
                if value.dtype.kind == "f" and not np.isfinite(value).all():
                    raise ValueError(f"{name} is not finite")
        for name in ("evidence", "age", "total", "proof", "n_since", "correct_since", "next_refresh_n"):
            if name in found.dtype.names and (found[name] < 0).any():
                raise ValueError(f"{name} is negative")
        for name in ("power", "shared_power", "base"):
            if name in found.dtype.names and not ((found[name] >= 0) & (found[name] <= 1)).all():
                raise ValueError(f"{name} is not in [0, 1]")
        if "power" in found.dtype.names:
            in_use = found["next_refresh_n"] > 0
            if (found["power"][in_use] == 0).any():
                raise ValueError("power is 0")
        if "dispersion" not in found.dtype.names:
            return
        dispersion = found["dispersion"]
        squares = dispersion["squares"]
        # An accepted value stays acceptable, because four-byte floats as large as these do not grow by a further block.
        if (squares < 0).any() or (squares > 1e34).any():
            raise ValueError("dispersion of no stream")

    def _check_counts(self, ones: Any) -> None:
        """Counts agree, those of events, those since the restart, observations of each class, and the reference."""
        events = (ones["head"]["events"] >> FLAGS).astype(np.int64)[:, None]
        counts, recall, taken = ones["counts"], ones["recall"], ones["shared"]["taken"][:, None]
        n, right = recall["n"], recall["ones"]
        wrong = (counts < 0).any((1, 2)) | (counts > events[:, None]).any((1, 2)) | (counts.sum((1, 2)) != taken[:, 0])
        wrong |= (taken > events)[:, 0] | (counts.sum((1, 2), dtype=np.float64) > 2.0**62)  # more would not be a sum
        if wrong.any():
            raise ValueError("counts that do not fit the events since the restart")
        other = (n != counts.sum(2)) | (right != counts.diagonal(0, 1, 2))  # under hold an alarm keeps the counts
        if ((right < 0) | (right > n) | (n > events) | (other > self.hold)).any():
            raise ValueError("observations that do not fit the events since the restart")
        if ((taken - recall["last"].astype(np.int64)) % 2**32 > taken).any():
            raise ValueError("an observation after the last event")
        if (np.abs(recall["moved"].astype(np.int64)) > (1 if self.hold else 0)).any():
            raise ValueError("a recall that moved neither up nor down")
        if (recall["row"] >= len(self.table)).any():
            raise ValueError("a rate that is in no row")
        self._check_blocks(ones, events[:, 0])
        self._check_reference(ones["look"]["given"], ones["look"]["ones"])
        known, given = n.astype(np.float64), ones["look"]["given"]
        if self.sampled:  # a drawn observation may count as hundreds, one of the reference as several
            known, given = np.maximum(known, ones["sample"]["n"]), np.maximum(given, ones["sample"]["given"])
        known = known + np.where(recall["moved"] == 0, given, 0)
        self._check_base(recall["base"], recall["next_refresh_n"], n, known)
        recent = ones["recent"]
        if (
            (recent["n"] > RECENT).any()
            or (recent["ones"] > recent["n"]).any()
            or ((recent["last_n"] > RECENT) | (recent["last_ones"] > recent["last_n"])).any()
        ):
            raise ValueError("latest observations that cannot be")
        if self.watch_mix:
            mix = ones["mix"]
            if ((mix["ones"] < 0) | (mix["ones"] > mix["n"]) | (mix["n"] > events[:, 0])).any():
                raise ValueError("a mix that does not fit the events")
            self._check_base(mix["base"], mix["next_refresh_n"], mix["n"], mix["n"])

    def _check_blocks(self, ones: Any, events: Any) -> None:
        """The present blocks hold no more than there were observations in them."""
        recall, shared = ones["recall"], ones["shared"]
        phase = recall["phase"].astype(np.int64)
        counted = [(ones["mix"], events)] if self.watch_mix else []
        stray = (phase >= PERIOD).any()
        if self.strata == 1:
            counted.append((recall, phase))
        else:
            stray |= (np.abs(recall["block"]) > (phase % SMALLEST + ROUNDED) * self.estimate).any()
        at = events % SMALLEST * self.estimate
        stray |= (np.abs(shared["residual"]) > (at + ROUNDED) * self.estimate).any() or (
            (shared["block"] < 0) | (shared["block"] > at)
        ).any()
        stray |= ((shared["variance"] < 0) | (shared["variance"] > 0.25 + 1e-6)).any()
        for part, observed in [*counted, (shared, events), *([(recall, phase)] if self.strata > 1 else [])]:
            level = np.arange(LEVELS)
            first = part["dispersion"]["first"].astype(np.int64)
            half = (observed[..., None] // SMALLEST >> level & 1) * self.estimate  # a first block waits for its second
            stray |= (np.abs(first) > UNITS * half * (SMALLEST << level)).any()
            stray |= not self.estimate and (part["dispersion"]["pairs"] > 0).any()
        for part, observed in counted:  # right ones
            first, block = part["dispersion"]["first"], part["block"]
            stray |= (first < 0).any() or (first % UNITS != 0).any() or (block != np.floor(block)).any()
            stray |= ((block < 0) | (block > observed % SMALLEST * self.estimate)).any()
        if stray:
            raise ValueError("blocks of no stream")

    def _check_reference(self, given: Any, ones: Any) -> None:
        """A reference is counts, of every class or of none that is left."""
        whole = (given == np.floor(given)) & (ones == np.floor(ones)) & (ones >= 0) & (ones <= given) & (given <= 1e12)
        if not whole.all():
            raise ValueError("a reference that holds no counts")

    def _check_looks(self, ones: Any) -> None:
        """A recall has moved if there is a look at it, and the look's observations were made."""
        look, away = ones["look"], ones["recall"]["moved"] != 0
        events = (ones["head"]["events"] >> FLAGS).astype(np.int64)[:, None]
        stray = (look["condition"] > RECOVERING) | ((look["condition"] != 0) != away) | (away > self.hold)
        stray |= (look["settled"] > 1) | (np.abs(look["opened"].astype(np.int64)) > 1)
        stray |= (look["direction"] != ALONE) & (look["direction"] >= self.directions)
        most = ODDS * events if self.sampled else events  # as they count
        stray |= (look["normal_ones"] < 0) | (look["normal_ones"] > look["normal_n"]) | (look["normal_n"] > most)
        stray |= (look["away_ones"] > look["away_n"]) | (look["away_n"] > most)
        weights = look["weight"].astype(np.float64)
        stray |= ~(weights >= 0).all(2) | ~(np.abs(weights.sum(2) - away) < 1e-3)
        back, age = look["back"].astype(np.float64), look["back_age"].astype(np.float64)
        taken = ones["shared"]["taken"][:, None]
        last = (taken - (taken - ones["recall"]["last"].astype(np.int64)) % 2**32).astype(np.float64)
        stray |= ~((back >= 0) & (age >= 0)) | (back > self.threshold) | (age > 1.01 * last * (back + NOTHING))
        quiet = [look[name] == 0 for name in look.dtype.names if name not in ("given", "ones", "opened", "weight")]
        stray |= ~away & ~np.logical_and.reduce(quiet)
        if stray.any():
            raise ValueError("a look at no drift")

    def _check_strata(self, ones: Any) -> None:
        """The observations of each stratum are among those counted."""
        expected, recall = ones["look"]["expected"], ones["recall"]
        if not ((expected >= 0) & (expected <= 1.001 * recall["n"] * (self.strata > 1))).all():
            raise ValueError("right ones to expect that do not fit the observations")
        if not (np.abs(recall["offset"]) <= 40 * (self.strata > 1)).all():
            raise ValueError("a level that is too far from the mean of the strata")
        if self.sampled:
            self._check_sample(ones)
        if self.strata == 1 or self.sampled:
            return
        stratum, events = ones["stratum"], (ones["head"]["events"] >> FLAGS).astype(np.int64)
        n, due, base = (stratum[name].astype(np.float64) for name in ("n", "next_refresh_n", "base"))
        stray = (stratum["ones"] > n).any() or (n.sum((1, 2)) > events).any() or (n >= 2**31).any()
        stray |= not ((due >= 0) & (due <= 1.01 * (n + np.maximum(1.0, n * self.lag)))).all()
        stray |= not ((base >= 0) & (base <= 1)).all() or ((due > n) & ((base == 0) | (base == 1))).any()
        if stray:
            raise ValueError("strata of no stream")

    def _check_sample(self, ones: Any) -> None:
        """The weight of sampled observations is possible, and the variance of their blocks."""
        sample, spread = ones["sample"], ones["spread"]
        begun, most = spread["begun"], 0.2501 * (SMALLEST << np.arange(LEVELS))
        started = ones["head"]["events"] >> FLAGS > 0
        wrong = ~((begun >= 0) & (begun <= 1.001)).all(1) | (started & (begun[:, -1] < 0.999 / self.classes))
        for variance, largest in ((spread["block"], most[0]), (spread["first"], most)):
            wrong |= ~((variance >= 0) & (variance <= largest)).reshape(len(ones), -1).all(1)
        if wrong.any():
            raise ValueError("blocks of no sample")
        n, volume, given = sample["n"], sample["volume"], sample["given"]
        stray = ~((n >= 0) & (n < 1e15) & (given >= 0) & (given < 1e15) & (volume >= 0) & (volume < 1e15)) | ~(
            np.abs(sample["odds"]) <= self.strata // 2
        )
        stray |= sample["known"] > USUAL
        for part in ("", "recent_", "last_"):
            right, most = sample[part + "ones"], sample[part + "n"] * 1.001 + 1e-3
            stray |= ~((right >= 0) & (right <= most) & (most < 1e15))
        if stray.any():
            raise ValueError("observations of no sample")

    def _check_episode(self, ones: Any) -> None:
        """A drift is open while a recall has moved; an event of the stream reported it, in possible numbers."""
        episode, confusion = ones["episode"], ones["confusion"]
        is_open = (ones["recall"]["moved"] != 0).any(1)
        events = (ones["head"]["events"] >> FLAGS).astype(np.int64)
        stray = ((ones["head"]["events"] & OPEN) != 0) != is_open
        stray |= ((episode["at"] > 0) != is_open) | (episode["at"] < 0) | (episode["at"] > events)
        stray |= ~((episode["first"] >= episode["started"]) & (episode["started"] >= episode["last"]))
        stray |= (np.maximum(episode["first"], episode["since"]) >= np.maximum(episode["at"], 1)) & is_open
        stray |= ~((episode["mixed"] >= 0) & (episode["mixed"] <= 1)).all((1, 2))
        stray |= ~(episode["evidence"] >= 0) | ~np.isfinite(episode["evidence"])
        stray |= (episode["known"] != 0) & (episode["known"] != 1)
        stray |= (confusion < 0).any((1, 2)) | (confusion.sum((1, 2), dtype=np.float64) > np.minimum(events, 2.0**62))
        stray |= ~_are_shares(ones["change"].reshape(len(ones), -1, 4)).all(1)
        stray |= (ones["look"]["opened"] != 0).any(1) != is_open
        empty = [ones[name] for name in ("change", "confusion")] + [episode[name] for name in episode.dtype.names]
        if self.watch_joint:
            shares = ones["joint"]["shares"]
            stray |= ~_are_shares(shares).all(1)
            empty.append(shares)
        for part in empty:
            stray |= ~is_open & (part.reshape(len(ones), -1) != 0).any(1)
        if stray.any():
            raise ValueError("an episode of no drift")

    def _check_confusions(self, ones: Any) -> None:
        """A confusion has no more hits than its class observations, and no evidence beyond the alarm."""
        cells, swap = ones["cell"], ones["swap"]
        whole = cells["hits"].diagonal(0, 1, 2)[:, :, None]
        events = (ones["head"]["events"] >> FLAGS)[:, None, None]
        stray = (cells["hits"] > whole) | (cells["last"] > whole) | (whole > events)
        stray |= (cells["began_n"] > whole) | (cells["began_hits"] > cells["hits"])
        stray |= (cells["hits"] - cells["began_hits"] > whole - cells["began_n"]) & ~np.eye(self.classes, dtype=bool)
        stray |= cells["began_hits"] > cells["began_n"]
        stray |= cells["began"] > ones["shared"]["taken"][:, None, None]
        stray |= ~((cells["base"] >= 0) & (cells["base"] <= 1))
        stray |= (cells["pair_n"] > whole) | (cells["pair_m"] > whole.swapaxes(1, 2))
        for evidence in (cells["evidence"], cells["pair"]):
            stray |= ~((evidence >= 0) & (evidence <= self.threshold)).all(-1)
        named = (swap["truth"] != swap["pred"]) & (ones["episode"]["at"] > 0)
        bad = np.maximum(swap["truth"], swap["pred"]) >= self.classes
        bad |= ~_are_shares(swap["shares"]).all(1) | (swap["spare"] != 0)
        bad |= ~named & ((swap["shares"] != 0).any((1, 2)) | (swap["truth"] != 0) | (swap["pred"] != 0))
        if stray.any() or bad.any():
            raise ValueError("confusions of no stream")

    def _check_base(self, base: Any, due: Any, n: Any, known: Any) -> None:
        """A base in use matches its number of observations, and will be updated."""
        least = 0.99 * self.prior / (known + 2 * self.prior)
        if ((due > n) & ((base < least) | (1.0 - base < least - 1e-7))).any() or (
            due > 1.01 * (n + np.maximum(1.0, known * max(self.lag, self.given_lag)))
        ).any():
            raise ValueError("a base that was never brought up to date, or never will be")

    def _check_evidence(self, ones: Any, parts: list[Any]) -> None:
        """Evidence adds up, is below the alarm, and is no older than the stream since the restart."""
        recall, shared, taken = ones["recall"], ones["shared"], ones["shared"]["taken"][:, None]
        last = (taken - (taken - recall["last"].astype(np.int64)) % 2**32).astype(np.float64)
        mixed = [ones["mix"]["n"][:, None].astype(np.float64)] if self.watch_mix else []  # since both began
        events = [last, taken, *mixed, *mixed]
        for found, seen, watched in zip(parts, events, self.watched, strict=False):
            evidence = found["evidence"].astype(np.float64)
            totals = evidence.sum(-1)
            lanes = [name for name in ("evidence", "age", "n_since", "correct_since") if name in found.dtype.names]
            if any(found[name][..., ~watched].any() for name in lanes):
                raise ValueError("evidence for a lane that is not watched")
            if (evidence > self.most).any():
                raise ValueError("evidence beyond the alarm")
            if (found["age"] > 1.01 * seen[..., None] * (evidence + NOTHING)).any():
                raise ValueError("evidence that is older than the stream")
            if (np.abs(totals - found["total"]) > 1e-4 * totals + NOTHING).any():
                raise ValueError("evidence that does not add up")
        if (np.abs(recall["total"].sum(1, dtype=np.float64) - shared["own"]) > 1e-6 * self.threshold).any():
            raise ValueError("evidence that does not add up")
        most = recall["n"][..., None] * (recall["evidence"].astype(np.float64) + NOTHING)
        if (recall["n_since"] > 1.01 * most).any() or (
            recall["correct_since"] > 1.01 * recall["n_since"] + NOTHING
        ).any():
            raise ValueError("more observations since a change than there were")


def _are_shares(shares: Any) -> Any:
    """Whether these can be the value, bounds and observations of shares in a report."""
    value, lower, upper, n = (shares[..., i].astype(np.float64) for i in range(4))
    return (lower >= 0) & (lower <= value) & (value <= upper) & (upper <= 1) & (n >= 0) & (n < 1e15)


@lru_cache(maxsize=64)
def _layout(classes: int, strata: int, watch_mix: bool, watch_joint: bool, watch_confusions: bool) -> np.dtype[Any]:
    """The layout of a record; `strata` is 0 for sampled events."""
    matrix = classes, classes
    fields: list[Any] = [("head", PARTS["head"]), ("counts", "i8", matrix), ("recent", PARTS["recent"], 2 * classes)]
    fields += [("recall", PARTS["recall"], classes), ("shared", PARTS["shared"])]
    fields += [(name, PARTS[name]) for name, watched in (("mix", watch_mix), ("joint", watch_joint)) if watched]
    fields += [("look", PARTS["look"], classes), ("episode", PARTS["episode"])]
    fields += [("confusion", "i8", matrix), ("change", "f4", (classes, 2, 4))]
    if not strata:
        fields += [("sample", PARTS["sample"], classes), ("spread", PARTS["spread"], classes + 1)]
    if strata > 1:
        fields.append(("stratum", PARTS["stratum"], (classes, strata)))
    if watch_confusions:
        fields += [("cell", PARTS["cell"], matrix), ("swap", PARTS["swap"])]
    return np.dtype(fields, align=True)
