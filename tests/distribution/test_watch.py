"""A stream, window against window: where alarms are, whatever the portions, and what a refused portion leaves."""

import numpy as np
import pytest

from fourrates.distribution import DensityTest, EDivisive, ErrorTest, MarginTest, RankTest, WindowWatch
from fourrates.distribution.examples import together
from fourrates.distribution.watch import Comparison
from fourrates.evaluate import score

KINDS = [EDivisive, DensityTest, RankTest, MarginTest, ErrorTest]


class Means(WindowWatch):
    """The simplest test: do the means of two windows differ by more than 1?"""

    def __init__(self, window=20, step=None, level=0.05):
        self.window, self.step, self.level = window, step, level

    def _compare(self, reference, latest):
        together(reference, latest)
        apart = abs(reference.features.mean() - latest.features.mean())
        return Comparison(apart, 0.0 if apart > 1 else 1.0)


def rows(*levels, length=100):
    """Numbers about each level, never constant."""
    flat = np.repeat(levels, length).astype(float)
    return flat + np.tile([0.1, -0.1], flat.size // 2)


def test_windows_follow_the_reference_one_by_one():
    (alarm,) = Means().update_many(rows(0, 5))
    assert (alarm.at, alarm.reference, alarm.latest) == (119, range(0, 20), range(100, 120))


def test_a_smaller_step_finds_it_sooner():
    # 5 of 20 rows at 5 make a mean of 1.25: the fifth row after the change.
    (alarm,) = Means(step=1).update_many(rows(0, 5))
    assert alarm.at == 104
    (alarm,) = Means(step=7).update_many(rows(0, 5))
    assert alarm.latest.stop == 40 + 7 * 10  # 110: the first of 40, 47, ... from 105 on
    assert alarm.at == 109


def test_after_an_alarm_the_reference_is_filled_again():
    found = Means().update_many(rows(0, 5, 0))
    assert [alarm.at for alarm in found] == [119, 219]
    assert found[1].reference == range(120, 140)


def test_the_portions_do_not_matter():
    stream = rows(0, 5, 1, 4)
    for step in (None, 1, 3, 50):
        whole = Means(step=step).update_many(stream)
        assert len(whole) >= 3
        for portion in (1, 7, 20, 33, 150):
            test = Means(step=step)
            found = [
                alarm
                for start in range(0, len(stream), portion)
                for alarm in test.update_many(stream[start : start + portion])
            ]
            assert found == whole


def test_one_row_at_a_time_is_the_same():
    test = Means(step=1)
    found = [alarm for row in rows(0, 5) if (alarm := test.update([row])) is not None]
    assert found == Means(step=1).update_many(rows(0, 5))


def test_what_is_kept_is_bounded():
    test = Means()
    test.update_many(rows(0, length=10_000))
    assert len(test._recent) == 20
    assert test._recent.features.base is None


def test_a_reset_forgets_the_stream():
    test = Means()
    first = test.update_many(rows(0, 5))
    assert test.reset().update_many(rows(0, 5)) == first


def test_alarms_are_positions_to_the_evaluation():
    found = score(Means().update_many(rows(0, 5)), changes=100, within=50)
    assert (found.hits, found.false_alarms, found.delays) == (1, 0, (19,))


def test_a_refused_portion_changes_nothing():
    stream = rows(0, 5)
    test = Means()
    test.update_many(stream[:50])
    bad = stream[50:].copy()
    bad[30] = np.nan
    with pytest.raises(ValueError, match="X is nan at row 80, feature 0"):
        test.update_many(bad)
    with pytest.raises(ValueError, match="X has 2 features from row 50 on; there were 1 before"):
        test.update_many(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="labels are given always or never; from row 50 on"):
        test.update_many(stream[50:], np.zeros(150))
    assert [alarm.at for alarm in test.update_many(stream[50:])] == [119]


def test_windows_that_cannot_be_compared_are_named_and_change_nothing():
    test = Means()
    test.update_many(np.full(30, 7.0))
    with pytest.raises(ValueError, match="X is constant in rows 0 to 19 and rows 20 to 39: feature 0 is always 7"):
        test.update_many(np.full(10, 7.0))
    (alarm,) = test.update_many(rows(11))
    assert alarm.latest == range(20, 40)


@pytest.mark.parametrize("kind", KINDS)
def test_every_test_watches_a_stream_with_labels(kind):
    random = np.random.default_rng(4)
    X = random.normal(size=(900, 3))
    y = np.where(np.arange(900) < 500, X[:, 0] > 0, X[:, 0] < 0)
    found = kind(window=100, level=0.01).update_many(X, y)
    assert [alarm.at for alarm in found if alarm.at >= 500][:1] == [599]
    assert all(alarm.p_value <= 0.01 for alarm in found)


@pytest.mark.parametrize("kind", [DensityTest, RankTest, MarginTest, ErrorTest])
def test_a_reference_given_with_fit_is_held_against_the_first_window(kind):
    # A stream that is off from its first row on has no change in it: only the reference tells.
    random = np.random.default_rng(2)
    stream = random.normal(2, size=(300, 2))
    assert kind(window=100, level=0.01).update_many(stream) == []
    test = kind(window=100, level=0.01).fit(random.normal(size=(300, 2)))
    (alarm,) = test.update_many(stream)
    assert (alarm.at, alarm.reference) == (99, None)


def test_e_divisive_tells_where_the_change_began():
    random = np.random.default_rng(3)
    stream = np.concatenate([random.normal(size=(450, 2)), random.normal(2, size=(150, 2))])
    (alarm,) = EDivisive(window=100, level=0.01).update_many(stream)
    assert alarm.at == 499
    assert abs(alarm.started - 450) <= 3
