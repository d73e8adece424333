"""What an open drift costs."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.watch.cost import ExtraCost, prices


def frame(tpr=0.6, size=40_000, seed=2):
    random = np.random.default_rng(seed)
    truth = random.random(size) < 0.1
    fallen = np.arange(size) >= size // 2
    right = random.random(size) < np.where(truth, np.where(fallen, tpr, 0.8), 0.97)
    times = np.datetime64("2026-05-01T00:00:00") + np.arange(size) * np.timedelta64(60, "s")
    return {"y_true": truth * 1, "y_pred": np.where(right, truth, ~truth) * 1, "time": times}


def test_an_open_drift_says_what_it_costs_a_day():
    """144 positives a day, of which 20 % more are missed, at 120 each: 3,456 a day."""
    (opened,) = fr.detect(frame(), cost={"miss": 120, "false alarm": 3}).now().open
    cost = opened.cost
    assert cost.lower / cost.days < 3_456 < cost.upper / cost.days
    assert str(opened).endswith(f", {cost}")
    assert str(cost).startswith("costs about 3,")


def test_without_times_it_is_the_cost_since_the_alarm():
    columns = frame()
    del columns["time"]
    found = fr.detect(columns, cost={"miss": 1})
    (opened,) = found.now().open
    assert opened.cost.value == pytest.approx(opened.harm, rel=0.1)
    assert found.to_dict()["open"][0]["cost"]["days"] is None
    assert "since the alarm" in str(opened.cost)


def test_no_price_no_cost():
    assert fr.detect(frame()).now().open[0].cost is None


def test_prices_by_class_and_prices_that_are_none():
    assert prices({"cat": 5, "dog": 0.5}, ("bird", "cat", "dog")) == {"recall:cat": 5.0, "recall:dog": 0.5}
    assert prices({1: 5}, (0, 1)) == prices({"1": 5}, (0, 1)) == prices({"miss": 5}, (0, 1)) == {"tpr": 5.0}
    for wrong in ({"misses": 3}, {"miss": -1}, {"miss": float("nan")}, {"miss": "3"}, {"miss": 10**400}):
        with pytest.raises(ValueError, match="cost: "):
            prices(wrong, (0, 1))
    with pytest.raises(TypeError, match="cost 120 names no errors"):
        prices(120, (0, 1))
    with pytest.raises(ValueError, match="'miss' is none of a, b, c"):
        fr.Watch(fr.FourRates(arl=10_000, labels=("a", "b", "c")), cost={"miss": 3})


def test_amounts_are_rounded_to_what_is_known():
    assert str(ExtraCost(41_234.5, 28_951, 52_333, 10.0)) == "costs about 4,100 a day (2,900 to 5,200)"
    assert str(ExtraCost(0.0, -1.26, 1.3)) == "costs about 0 since the alarm (-1.3 to 1.3)"
