from fourrates import Drift
from fourrates.evaluate import Score, score


def drifts(*at):
    return [Drift(at=i, since=i, changes=(), confusion=()) for i in at]


def test_a_drift_at_the_change_is_a_hit():
    assert score(drifts(100), change=100, within=10) == Score(hit=True, false_alarms=0, delay=0)


def test_the_window_ends_before_the_allowed_delay():
    assert score(drifts(109), change=100, within=10).hit
    assert not score(drifts(110), change=100, within=10).hit


def test_every_drift_before_the_change_is_a_false_alarm():
    assert score(drifts(3, 50, 99, 104, 108), change=100, within=10) == Score(hit=True, false_alarms=3, delay=4)


def test_nothing_found_is_a_miss_with_no_delay():
    assert score([], change=100, within=10) == Score(hit=False, false_alarms=0, delay=None)
