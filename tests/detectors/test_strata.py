"""Strata: a normal by hour, weekday or type of day, and one evidence for all of them."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.detectors.seasons import choose_season

DAY = 300  # events


def weekly(seed, weeks, factor=2.0, fall=0.0, rare=0):
    """Truths, predictions and weekdays; errors are `factor` times as many at weekends, tpr falls in the last third."""
    random, size = np.random.default_rng(seed), weeks * 7 * DAY
    days = np.arange(size) // DAY % 7
    truth = random.random(size) < 0.4
    wrong = np.where(truth, 0.12, 0.08) * np.where(days >= 5, factor, 1.0)
    wrong = np.where(truth & (np.arange(size) > 2 * size / 3), wrong + fall, wrong)
    return truth, truth ^ (random.random(size) < wrong), days


def frame(seed, weeks, factor=2.0):
    truth, pred, days = weekly(seed, weeks, factor)
    times = np.datetime64("2026-01-05", "us") + (np.arange(truth.size) * (86_400_000_000 // DAY)).astype("m8[us]")
    return {"label": truth.astype(int), "prediction": pred.astype(int), "time": times, "day": days}


def test_a_season_is_normal_where_normal_is_kept_by_stratum():
    """20 streams of 20,000 events at a budget of 10,000: 40 alarms asked for, so at most 60 but once in 700 runs."""
    alarms = {None: 0, 7: 0}
    for seed in range(20):
        truth, pred, days = weekly(seed, 10)
        for strata in alarms:
            detector = fr.FourRates(10_000, strata=strata, dispersion=1.0)
            alarms[strata] += len(detector.update_many(truth, pred, strata=days if strata else None))
    assert alarms[7] <= 60
    assert alarms[None] > 80


def test_a_fall_in_a_season_is_found_confirmed_and_of_the_size_it_has():
    truth, pred, days = weekly(5, 30, fall=0.12)
    detector = fr.FourRates(100_000, strata=7)
    (drift,) = detector.update_many(truth, pred, strata=days)
    assert [(change.rate, change.direction) for change in drift.changes] == [("tpr", "down")]
    assert 0 < drift.at - 2 * truth.size / 3 < 1_500
    assert detector.rates["tpr"].state == "confirmed"
    assert detector.rates["tpr"].now.value == pytest.approx(1 - 0.12 * 9 / 7 - 0.12, abs=0.03)


def test_a_stratum_that_comes_up_for_the_first_time_begins_from_the_mean():
    """In 40 streams the budget allows two alarms; seven come up by chance once in 220 runs."""
    random, alarms = np.random.default_rng(5), 0
    for _ in range(40):
        truth = random.random(10_000) < 0.5
        pred = truth ^ (random.random(10_000) < 0.1)
        days = np.where(np.arange(10_000) < 5_000, 0, 1)
        alarms += len(
            [one for one in fr.FourRates(100_000, strata=2).update_many(truth, pred, strata=days) if one.at >= 5_000]
        )
    assert alarms < 7


def test_every_way_in_gives_the_same(tmp_path):
    truth, pred, days = weekly(3, 12, fall=0.12)
    detector = fr.FourRates(20_000, strata=7)
    drifts = detector.update_many(truth, pred, strata=days)
    assert drifts
    one, found = fr.FourRates(20_000, strata=7), []
    for event in zip(truth.tolist(), pred.tolist(), days.tolist(), strict=True):
        one.update(*event)
        found += one.findings
    assert one.to_bytes() == detector.to_bytes()
    assert [finding for finding in found if finding.kind == "drift"] == drifts
    first = fr.FourRates(20_000, strata=7)
    first.update_many(truth[:300], pred[:300], strata=days[:300])
    again = fr.FourRates.from_bytes(first.to_bytes())
    assert again.update_many(truth[300:], pred[300:], strata=days[300:]) == drifts
    bank = fr.Bank(fr.FourRates(20_000, strata=7))
    assert [keyed.finding for keyed in bank.update(days * 0, truth, pred, days)] == drifts


def test_a_record_with_seven_strata_has_at_most_2200_bytes():
    assert len(fr.FourRates(strata="week").record_bytes) <= 2_200


@pytest.mark.parametrize(
    ("given", "strata", "message"),
    [
        (7, None, "this detector has 7 strata; strata= must give"),
        (7, [7], "whole numbers from 0 to 6"),
        (7, [-1], "whole numbers from 0 to 6"),
        (7, [0.5], "whole numbers from 0 to 6"),
        (7, [0, 1], "strata has shape"),
        (None, [0], "this FourRates has none"),
    ],
)
def test_strata_that_cannot_be_are_named(given, strata, message):
    with pytest.raises(ValueError, match=message):
        fr.FourRates(strata=given).update_many([1], [1], strata=strata)
    with pytest.raises(ValueError, match="LFR has none"):
        fr.LFR().update(1, 1, 0)
    with pytest.raises(ValueError, match="strata 'month' is not a whole number"):
        fr.FourRates(strata="month")


@pytest.mark.parametrize(("factor", "season"), [(2.0, "week"), (1.0, None)])
def test_the_season_is_chosen_by_the_first_full_weeks(factor, season):
    """Without a season one is chosen by mistake in half a percent of streams; these two seeds are not among them."""
    for seed in (1, 2):
        found = fr.detect(frame(seed, 6, factor), arl=20_000)
        assert found.watch.detector.parameters["strata"] == season
        assert any("normal is kept by weekday" in sentence for sentence in found.messages) == (season is not None)


def test_a_season_by_hours_is_found_as_well():
    random = np.random.default_rng(1)
    seconds = np.sort(random.integers(0, 6 * 86_400, 60_000))
    truth = (random.random(60_000) < 0.4).astype(np.uint16)
    wrong = 0.1 * (1 + 0.6 * np.sin(2 * np.pi * seconds / 86_400))
    times = np.datetime64("2026-01-05", "us") + seconds.astype("m8[s]")
    assert choose_season(times, truth, truth ^ (random.random(60_000) < wrong)) == "day"
    assert choose_season(times, truth, truth ^ (random.random(60_000) < 0.1)) is None


def test_detect_takes_a_season_or_a_column_of_strata():
    events = frame(4, 6)
    by_week, by_column, plain = (
        [(one.at, one.kind) for one in fr.detect(events, arl=3_000, **more)]
        for more in ({"season": "week"}, {"season": None, "stratum": "day"}, {"season": None})
    )
    assert by_week == by_column  # weekdays by another name
    assert by_week != plain
    with pytest.raises(fr.io.InputError, match="24 in column 'day' is not a stratum"):
        fr.detect(events | {"day": events["day"] * 4}, stratum="day")
    with pytest.raises(fr.io.InputError, match="normal by weekday needs times"):
        fr.detect((events["label"], events["prediction"]), season="week")
