"""NFR: a trace worked by hand, its sides and classes, and its bounds against the plain formula."""

import math

import numpy as np
import pytest
from traces import level, rows

import fourrates as fr
from fourrates.streams import SCENARIOS

# With 3 observations of a rate before it is tested, and levels 0.2 and 0.05: 0.841621 and 1.644854 deviations. Two
# lines an event, one for each rate it touches. hat is the share of ones among its n observations, bar the mean of all
# its hats, s = root of bar (1 - bar) / n. At event 6 the warning stands because of tnr, which it does not touch; at
# event 7 because of ppv, with 4/5 below 0.802286.
TRACE = """
event truth pred rate n  hat     bar        s warn_low  warn_up      low       up state
    0     1     1  tpr 1    1       1 0.000000        -        -        -        - quiet
    0     1     1  ppv 1    1       1 0.000000        -        -        -        - quiet
    1     0     0  tnr 1    1       1 0.000000        -        -        -        - quiet
    1     0     0  npv 1    1       1 0.000000        -        -        -        - quiet
    2     1     1  tpr 2    1       1 0.000000        -        -        -        - quiet
    2     1     1  ppv 2    1       1 0.000000        -        -        -        - quiet
    3     0     0  tnr 2    1       1 0.000000        -        -        -        - quiet
    3     0     0  npv 2    1       1 0.000000        -        -        -        - quiet
    4     1     1  tpr 3    1       1 0.000000 1.000000 1.000000 1.000000 1.000000 quiet
    4     1     1  ppv 3    1       1 0.000000 1.000000 1.000000 1.000000 1.000000 quiet
    5     0     1  tnr 3  2/3     8/9 0.181444 0.736182 1.041596 0.590441 1.187337 warning
    5     0     1  ppv 4  3/4   15/16 0.121031 0.835638 1.039362 0.738422 1.136578 warning
    6     1     1  tpr 4    1       1 0.000000 1.000000 1.000000 1.000000 1.000000 warning
    6     1     1  ppv 5  4/5  91/100 0.127984 0.802286 1.017714 0.699484 1.120516 warning
    7     0     0  tnr 4  3/4   41/48 0.176470 0.705646 1.002687 0.563900 1.144433 warning
    7     0     0  npv 3    1       1 0.000000 1.000000 1.000000 1.000000 1.000000 warning
    8     1     1  tpr 5    1       1 0.000000 1.000000 1.000000 1.000000 1.000000 quiet
    8     1     1  ppv 6  5/6 323/360 0.123972 0.792885 1.001560 0.693306 1.101138 quiet
    9     0     0  tnr 5  4/5 253/300 0.162556 0.706523 0.980144 0.575953 1.110714 quiet
    9     0     0  npv 4    1       1 0.000000 1.000000 1.000000 1.000000 1.000000 quiet
   10     1     0  tpr 6  5/6   35/36 0.067090 0.915758 1.028686 0.861869 1.082575 drift
   10     1     0  npv 5  4/5   24/25 0.087636 0.886244 1.033756 0.815852 1.104148 drift
"""


def test_every_step_of_the_trace_is_as_worked_by_hand():
    detector = fr.baselines.NFR(warn=0.2, detect=0.05, minimum=3)
    table = rows(TRACE)
    for touched in zip(table[::2], table[1::2], strict=True):
        drift = detector.update(int(touched[0]["truth"]), int(touched[0]["pred"]))
        assert level(detector) == touched[0]["state"], touched
        if drift:
            break
        for row in touched:
            state = detector.rates[row["rate"]]
            assert state.n == row["n"]
            assert state.estimate == state.statistic == pytest.approx(float(row["hat"]))
            assert state.expected == pytest.approx(float(row["bar"]))
            if row["low"] is None:
                assert state.warn == state.detect == (-math.inf, math.inf)
            else:
                assert state.warn.lower == pytest.approx(float(row["warn_low"]), abs=5e-7)
                assert state.warn.upper == pytest.approx(float(row["warn_up"]), abs=5e-7)
                assert state.detect.lower == pytest.approx(float(row["low"]), abs=5e-7)
                assert state.detect.upper == pytest.approx(float(row["up"]), abs=5e-7)
                assert (state.detect.upper - state.expected) / 1.644854 == pytest.approx(float(row["s"]), abs=1e-6)
    assert (drift.at, drift.since) == (10, 10)
    assert drift.confusion == ((4, 1), (1, 5))
    for change, row in zip(drift.changes, table[-2:], strict=True):
        assert (change.rate, change.direction, change.decay) == (row["rate"], "down", None)
        assert change.n == row["n"]
        assert change.statistic == pytest.approx(float(row["hat"]))
        assert change.bound == pytest.approx(float(row["low"]), abs=5e-7)
        assert change.expected == pytest.approx(float(row["bar"]))


def test_after_a_drift_it_starts_afresh_and_counts_on():
    truth, pred = ([int(row[name]) for row in rows(TRACE)[::2]] for name in ("truth", "pred"))
    detector = fr.baselines.NFR(warn=0.2, detect=0.05, minimum=3)
    first, second = detector.update_many(truth + truth, pred + pred)
    assert (second.at, second.since) == (first.at + 11, first.since + 11)
    assert second.changes == first.changes


def test_eleven_right_and_one_wrong_are_a_drift_unless_a_minimum_forbids():
    # hat = 11/12, bar = 1 - 1/144, s = root of bar / 144 / 12 = 0.023975: 3.19 deviations, more than the 3.09 of 0.001.
    truth, pred = [1] * 12, [1] * 11 + [0]
    assert [drift.at for drift in fr.baselines.NFR(minimum=1).update_many(truth, pred)] == [11]
    assert fr.baselines.NFR(minimum=13).update_many(truth, pred) == []


@pytest.mark.parametrize(("move", "rates"), [("down", (0.9, 0.5)), ("up", (0.5, 0.9))])
@pytest.mark.parametrize("sides", ["both", "down", "up"])
def test_only_the_sides_asked_for_alarm(sides, move, rates):
    random = np.random.default_rng(8)
    right = np.concatenate([random.random(2000) < rate for rate in rates])
    drifts = fr.baselines.NFR(sides=sides).update_many(np.ones(4000, int), right.astype(int))
    found = {change.direction for drift in drifts for change in drift.changes if change.rate == "tpr"}
    assert found == ({move} if sides in ("both", move) else set())


def test_more_classes_have_two_rates_each():
    detector = fr.baselines.NFR(labels=("cat", "dog", "fish"))
    detector.update("cat", "dog")
    touched = {name for name, state in detector.rates.items() if state.n}
    assert touched == {"recall:cat", "precision:dog"}


def test_positive_says_which_label_the_rates_are_about():
    detector = fr.baselines.NFR(labels=("bad", "good"), positive="bad")
    detector.update("bad", "bad")
    assert detector.rates["tpr"].n == 1
    assert detector.rates["tnr"].n == 0


def test_the_later_a_change_comes_the_longer_it_takes():
    # The delays of 20 streams each; the median grows about as the root of the age, here the root of 20. Twice is asked.
    def delay(seed, length):
        change = length // 2
        drifts = fr.baselines.NFR().update_many(*SCENARIOS["Imbalance1"].stream(seed=seed, length=length))
        return next((drift.at - change for drift in drifts if drift.at >= change), change)

    early, late = (np.median([delay(seed, length) for seed in range(20)]) for length in (10_000, 200_000))
    assert late > 2 * early


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"warn": 0.5}, r"warn 0.5 is not in \[1e-09, 0.5\)"),
        ({"detect": 0}, r"detect 0.0 is not in \[1e-09, 0.5\)"),
        ({"detect": 0.025}, "warn 0.025 is not larger than detect 0.025"),
        ({"minimum": 0}, "minimum 0 is less than 1"),
        ({"sides": "left"}, "sides 'left' is not one of"),
        ({"labels": (0, 1, 2), "positive": 1}, "positive 1 goes with two labels, not with 3"),
    ],
)
def test_bad_parameters_are_refused_by_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        fr.baselines.NFR(**arguments)
