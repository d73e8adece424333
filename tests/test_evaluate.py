"""Detections against the truth, by hand and against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourrates import Drift
from fourrates.evaluate import RunLength, Score, run_length, score, summarise


def drifts(*at):
    return [Drift(at=i, since=i, changes=(), confusion=()) for i in at]


# ---------------------------------------------------------------------------------------------- one change


def test_a_drift_at_the_change_is_a_hit():
    assert score(drifts(100), changes=100, within=10) == Score(hits=1, false_alarms=0, delays=(0,), drifts=1)


def test_the_window_ends_before_the_allowed_delay():
    assert score(drifts(109), changes=100, within=10).hits == 1
    assert score(drifts(110), changes=100, within=10).hits == 0


def test_a_late_drift_is_found_but_no_hit():
    late = score(drifts(150), changes=100, within=10)
    assert (late.hits, late.found, late.delays, late.false_alarms) == (0, 1, (50,), 0)
    assert (late.precision, late.recall) == (0, 0)


def test_every_drift_before_one_change_is_a_false_alarm():
    found = score(drifts(3, 50, 99, 104, 108), changes=100, within=10)
    assert found == Score(hits=1, false_alarms=3, delays=(4,), drifts=5)


def test_after_one_change_nothing_is_a_false_alarm_even_if_the_end_is_known():
    # The paper's false-detection period of a stream with one change in its middle is [0, T/2).
    assert score(drifts(105, 190), changes=100, within=10, length=200).false_alarms == 0


def test_nothing_found_is_a_miss_with_no_delay():
    assert score([], changes=100, within=10) == Score(hits=0, false_alarms=0, delays=(None,), drifts=0)


def test_without_drifts_there_is_no_precision_and_without_changes_no_recall():
    assert math.isnan(score([], changes=100, within=10).precision)
    assert math.isnan(score([5], changes=[], within=10).recall)
    assert score([5], changes=[], within=10).false_alarms == 1


def test_positions_do_as_well_as_drifts_in_any_order():
    assert score([108, 3, np.int64(104)], 100, 10) == score(drifts(3, 104, 108), 100, 10)


def test_whole_numbers_of_any_kind_are_positions_and_others_are_refused():
    assert repr(score(np.array([5]), np.array([3, 9]), 5)) == repr(score([5], (3, 9), 5))
    with pytest.raises(TypeError, match="float"):
        score([5.5], 3, 5)
    with pytest.raises(TypeError, match="float"):
        score([5], 3.0, 5)


# ---------------------------------------------------------------------------------------------- several changes


def test_false_alarms_are_counted_from_the_middle_of_each_concept():
    # Concepts 0..99, 100..299 and 300..: false from 50 up to 100 and from 200 up to 300.
    spots = {49: 0, 50: 1, 99: 1, 100: 0, 199: 0, 200: 1, 299: 1, 300: 0, 399: 0}
    for at, false in spots.items():
        assert score([at], changes=[100, 300], within=10).false_alarms == false, at


def test_the_last_concept_counts_from_its_middle_if_the_end_is_known():
    assert score([349, 350, 399], changes=[100, 300], within=10, length=400).false_alarms == 2
    assert score([349, 350, 399], changes=[100, 300], within=10).false_alarms == 0


def test_the_middle_of_an_odd_concept_is_rounded_up():
    # 0..100: its middle is 50.5.
    assert score([50], changes=[101, 200], within=10).false_alarms == 0
    assert score([51], changes=[101, 200], within=10).false_alarms == 1


def test_the_delay_ends_with_the_next_change():
    # 205 belongs to the second change, though it is within 150 of the first one too.
    found = score([205], changes=[100, 200], within=150)
    assert (found.delays, found.hits) == ((None, 5), 1)


def test_a_second_drift_within_the_allowed_delay_is_a_false_positive():
    # HLFR: two true positives, one extra in the range, one outside of it; one change of three missed.
    found = score([105, 108, 205, 290], changes=[100, 200, 300], within=10)
    assert (found.hits, found.precision, found.recall) == (2, 2 / 4, 2 / 3)


@given(
    found=st.lists(st.integers(0, 199), max_size=12),
    changes=st.lists(st.integers(1, 199), min_size=2, max_size=5, unique=True).map(sorted),
    within=st.integers(1, 80),
)
def test_a_score_is_what_a_walk_through_the_stream_counts(found, changes, within):
    length, starts = 200, [0, *changes]
    first, false, true = {}, 0, 0
    for at in sorted(found):
        concept = sum(at >= change for change in changes)
        stop = [*changes, length][concept]
        false += 2 * at >= starts[concept] + stop
        if concept and concept not in first:
            first[concept] = at - starts[concept]
            true += first[concept] < within
    expected = tuple(first.get(number) for number in range(1, len(starts)))
    assert score(found, changes, within, length=length) == Score(true, false, expected, len(found))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [200, 100], 10), r"changes \(200, 100\) do not rise within a stream of 400 events"),
        (([], [100, 100], 10), r"changes \(100, 100\) do not rise"),
        (([], -5, 10), r"changes \(-5,\) do not rise"),
        (([], 400, 10), r"changes \(400,\) do not rise within a stream of 400 events"),
        (([], 100, 0), "within 0: at least one event"),
        (([500], 100, 10), "a drift at 500 is not in a stream of 400 events"),
        (([-1], 100, 10), "a drift at -1 is not in a stream"),
    ],
)
def test_bad_changes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        score(*arguments, length=400)


def test_a_summary_adds_up():
    summary = summarise(
        [
            Score(hits=1, false_alarms=2, delays=(10, None), drifts=4),
            Score(hits=2, false_alarms=0, delays=(20, 60), drifts=2),
        ]
    )
    assert (summary.runs, summary.changes, summary.hits, summary.found) == (2, 4, 3, 3)
    assert (summary.false_per_run, summary.mean_delay, summary.median_delay) == (1, 30, 20)
    assert (summary.precision, summary.recall) == (3 / 6, 3 / 4)
    assert str(summary) == (
        "3 hits of 4, 1.00 false alarms a run, delay 30.0 in the mean and 20 in the median of 3 found, "
        "precision 0.500, recall 0.750"
    )


def test_a_summary_of_nothing_says_so():
    empty = summarise([])
    assert empty.runs == 0
    assert all(map(math.isnan, (empty.false_per_run, empty.mean_delay, empty.median_delay, empty.precision)))


# ---------------------------------------------------------------------------------------------- run lengths


def test_runs_end_with_an_alarm_and_the_last_is_censored():
    found = run_length(drifts(9, 29), 100)
    assert found == RunLength(runs=(10, 20), censored=(70,))
    assert (found.alarms, found.events, found.mean) == (2, 100, 50)
    assert found.standard_error == pytest.approx(50 / math.sqrt(2))


def test_run_lengths_of_several_streams_add_up():
    found = sum((run_length(at, 100) for at in ([9], [], [49, 99])), RunLength())
    assert found == RunLength(runs=(10, 50, 50), censored=(90, 100, 0))
    assert found.mean == 100


def test_without_alarms_the_mean_is_infinite():
    assert run_length([], 1000).mean == math.inf


def test_alarms_beyond_the_stream_are_refused():
    with pytest.raises(ValueError, match="a drift at 100 is not in a stream of 100 events"):
        run_length([100], 100)
