"""Events watched again each night, with more labels: all nights together keep the budget."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.io import Batch
from fourrates.watch.nightly import new_findings

DAY = np.timedelta64(86_400_000_000, "us")
START = np.datetime64("2026-06-01T00:00:00", "us")
REFERENCE = [[9_000, 1_000], [2_000, 8_000]]


def night_of(truth, pred, day):
    """A watch after the night's events, and its findings."""
    watch = fr.Watch(fr.FourRates(10_000, reference=REFERENCE))
    times = START + (day * DAY.astype(int)).astype("m8[us]")
    batch = Batch(truth.astype(np.uint16), pred.astype(np.uint16), "log", np.arange(day.size), times)
    return watch, watch.update(batch)


def stable_log(random, size, days=20):
    """Labels come half a day to ten days late."""
    day, truth = np.sort(random.random(size)) * days, random.random(size) < 0.3
    right = random.random(size) < np.where(truth, 0.8, 0.9)
    return day, day + 0.5 + random.exponential(3, size), truth, np.where(right, truth, ~truth)


def test_twenty_nights_of_a_stable_log_have_no_more_false_drifts_than_the_budget():
    random, reported_drifts, every_alarm = np.random.default_rng(11), 0, 0
    for _ in range(60):
        day, came, truth, pred = stable_log(random, 10_000)  # one false drift each is the budget
        reported, earlier = {}, set()
        for night in range(3, 21):
            known = came < night
            watch, found = night_of(truth[known], pred[known], day[known])
            drifts = [finding for finding in found if finding.kind == "drift"]
            every_alarm += len({one.started_time for one in drifts} - earlier)
            earlier |= {one.started_time for one in drifts}
            reported_drifts += sum(one.kind == "drift" for one in new_findings(watch, found, reported))
    assert reported_drifts <= 60 + 2 * 60**0.5  # a Poisson count at most, at two standard errors
    assert every_alarm > 2 * reported_drifts  # what is held back


@pytest.fixture
def burst():
    """A few hours of errors in a stable log, and the days after."""
    random = np.random.default_rng(1)
    day, truth = np.linspace(0, 12, 3_600), np.ones(3_600, bool)
    return day, truth, random.random(3_600) < np.where((day >= 6) & (day < 6.15), 0.5, 0.8)


def test_a_drift_that_has_lost_its_evidence_is_held_back_and_its_withdrawal_with_it(burst):
    day, truth, pred = burst
    seen = {}
    for until in np.arange(6.1, 9, 0.02):
        part = day < until
        watch, found = night_of(truth[part], pred[part], day[part])
        open_drift, closed = watch.open_drift(), any(one.closes for one in found)
        kept = [one.kind for one in new_findings(watch, found, {})]
        if open_drift is not None:
            assert ("drift" in kept) == open_drift.supported == (watch.now().status == "drifted")
            seen.setdefault(open_drift.supported, until)
        elif closed:
            seen["closed"] = until
            assert not kept or "confirmation" in kept
    assert seen.keys() == {True, False, "closed"}


def test_a_reported_drift_is_withdrawn_by_name_on_a_later_night(burst):
    day, truth, pred = burst
    reported, kinds = {}, []
    for until in np.arange(6.1, 12, 0.1):
        part = day < until
        watch, found = night_of(truth[part], pred[part], day[part])
        kinds += [one.kind for one in new_findings(watch, found, reported)]
    assert kinds[:2] == ["drift", "withdrawal"]


def test_an_earlier_drift_that_is_held_back_does_not_hide_the_open_one(burst):
    day, truth, pred = burst
    pred &= (day < 9) | (np.random.default_rng(2).random(day.size) < 0.5)
    watch, found = night_of(truth, pred, day)
    assert [one.kind for one in found] == ["drift", "withdrawal", "drift", "confirmation"]
    assert [one.kind for one in new_findings(watch, found, {})] == ["drift", "confirmation"]
    assert watch.now().status == "drifted"


def test_after_the_reported_end_of_a_drift_an_alarm_is_new_however_early_it_started():
    random = np.random.default_rng(1)
    day = np.linspace(0, 12, 3_600)
    pred = random.random(3_600) < np.where(day >= 6, 0.5, 0.8)
    watch, found = night_of(np.ones(3_600, bool), pred, day)
    drift = next(one for one in found if one.kind == "drift")
    between = drift.started_time + (drift.time - drift.started_time) // 2
    told, ended = (int((between + wait).astype(np.int64)) for wait in (np.timedelta64(0), np.timedelta64(1, "s")))
    assert drift not in new_findings(watch, found, {"\ntpr down": told})
    assert drift in new_findings(watch, found, {"\ntpr down": told, "\nwithdrawal": ended})
