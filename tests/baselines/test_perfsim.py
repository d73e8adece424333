"""PerfSim: a trace worked by hand, the rules of batches, and what it is blind to."""

import math

import pytest
from traces import level, rows

import fourrates as fr

# Batches of 6 events: how many are tn, fp, fn and tp. dot is the sum of products with the batch before, own and other
# are the sums of squares of the two, cosine = dot / root of own other. Warning below 0.91, drift below 0.87.
TRACE = """
batch tn fp fn tp dot own other   cosine state
    0  3  1  0  2   -   -     -        - quiet
    1  3  0  1  2  13  14    14 0.928571 quiet
    2  2  1  1  2  11  10    14 0.929670 quiet
    3  1  2  1  2   9  10    10 0.900000 warning
    4  0  3  2  1  10  14    10 0.845154 drift
"""
CELLS = {"tn": (0, 0), "fp": (0, 1), "fn": (1, 0), "tp": (1, 1)}


def pairs(row):
    """The events of a batch, in an order that does not matter."""
    return [pair for name, pair in CELLS.items() for _ in range(int(row[name]))]


def test_every_step_of_the_trace_is_as_worked_by_hand():
    detector = fr.baselines.PerfSim(warn=0.91, detect=0.87, batch=6)
    state = "quiet"
    for row in rows(TRACE):
        *inside, last = pairs(row)
        for truth, pred in inside:
            assert detector.update(truth, pred) is None
            assert level(detector) == state  # what the last batch left
        drift = detector.update(*last)
        state = row["state"]
        assert level(detector) == state, row
        if drift:
            break
        similarity = detector.rates["similarity"]
        assert similarity.n == 6
        assert (similarity.warn.lower, similarity.detect.lower) == (0.91, 0.87)
        if row["cosine"] is None:
            assert math.isnan(similarity.statistic)
        else:
            assert float(row["dot"]) / math.sqrt(row["own"] * row["other"]) == pytest.approx(similarity.statistic)
            assert similarity.statistic == pytest.approx(float(row["cosine"]), abs=5e-7)
    assert (drift.at, drift.since) == (29, 18)  # the warning began with the batch of events 18 to 23
    assert drift.confusion == ((9, 7), (5, 9))
    (change,) = drift.changes
    assert (change.rate, change.direction, change.n, change.expected) == ("similarity", "down", 6, None)
    assert change.statistic == pytest.approx(0.845154, abs=5e-7)
    assert change.bound == 0.87
    assert str(change) == "similarity down: 0.845, below its bound 0.870 (after 6 observations)"


def test_after_a_drift_the_next_batch_is_the_first():
    detector = fr.baselines.PerfSim(batch=2)
    drifts = detector.update_many([0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1])
    assert [drift.at for drift in drifts] == [3, 7]  # the batch of events 4 and 5 had none to be held against


def test_without_a_warning_the_window_is_the_batch_that_differed():
    (drift,) = fr.baselines.PerfSim(batch=10).update_many([0] * 20 + [1] * 10, [0] * 20 + [1] * 10)
    assert drift.window == range(20, 30)


def test_a_warning_that_lapses_is_forgotten():
    detector = fr.baselines.PerfSim(warn=0.91, detect=0.87, batch=6)
    table = rows(TRACE)
    for row in (*table[:4], table[3]):  # equal to the batch before: the cosine is 1
        for pair in pairs(row):
            detector.update(*pair)
    assert detector.rates["similarity"].statistic == 1.0
    assert not detector.warning_detected
    for pair in pairs(table[4]):
        drift = detector.update(*pair)
    assert drift.since == 30


def test_a_rare_class_may_be_lost_unseen():
    # 480 true negatives in each; 16 tp and 4 fn in one, 20 fn in the other.
    cosine = (480**2 + 4 * 20) / math.sqrt((480**2 + 16**2 + 4**2) * (480**2 + 20**2))
    detector = fr.baselines.PerfSim()
    truth = ([0] * 480 + [1] * 20) * 2
    assert detector.update_many(truth, [0] * 480 + [1] * 16 + [0] * 504) == []
    assert not detector.warning_detected
    assert detector.rates["similarity"].statistic == pytest.approx(cosine)


def test_any_number_of_classes_makes_one_vector():
    labels = ("cat", "dog", "fish")
    detector = fr.baselines.PerfSim(warn=0.4, detect=0.3, batch=2, labels=labels)
    detector.update_many(["cat", "fish"], ["cat", "fish"])
    assert detector.update_many(["cat", "fish"], ["cat", "dog"]) == []
    assert detector.rates["similarity"].statistic == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"warn": 1.5}, r"warn 1.5 is not in \(0, 1\)"),
        ({"detect": 0.99}, "warn 0.99 is not larger than detect 0.99"),
        ({"batch": 0}, "batch 0 is less than 1"),
        ({"batch": 100.0}, "batch 100.0 is not a whole number"),
    ],
)
def test_bad_parameters_are_refused_by_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        fr.baselines.PerfSim(**arguments)
