"""Detections against the truth, by hand and against plain loops."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from fourrates import Drift
from fourrates.evaluate import RunLength, Score, prequential, run_length, score, summarise, totals


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


def test_the_delay_of_HLFR_is_that_of_the_hits_alone():
    # Found after 10, after 600 (late) and not at all; in another stream after 30.
    scores = [score([1010, 2600], (1000, 2000, 3000), 100), score([130], 100, 50)]
    assert [one.hit_delays for one in scores] == [(10,), (30,)]
    summary = summarise(scores)
    assert summary.hit_delays == (10, 30)
    assert summary.mean_hit_delay == 20
    assert summary.mean_delay == pytest.approx(640 / 3)
    assert math.isnan(summarise([score([], 100, 50)]).mean_hit_delay)


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


def test_without_alarms_the_mean_has_a_lower_limit_only():
    low, high = run_length([], 1000).interval()
    # P(no alarm) = exp(-1000 / mean) is 0.025 at the limit.
    assert low == pytest.approx(1000 / -math.log(0.025))
    assert high == math.inf
    assert run_length([], 1000).mean == math.inf


@pytest.mark.parametrize("alarms", [1, 2, 10, 400, 20_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_interval_is_that_of_a_poisson_count(alarms, confidence):
    # The logarithm of a probability is a difference of numbers up to 200,000, so good to 1e-10 or so.
    tail = (1 - confidence) / 2
    low, high = RunLength((1,) * alarms).interval(confidence)
    assert low == pytest.approx(2 * alarms / scipy.stats.chi2.ppf(1 - tail, 2 * alarms + 2), rel=1e-9)
    assert high == pytest.approx(2 * alarms / scipy.stats.chi2.ppf(tail, 2 * alarms), rel=1e-9)


@pytest.mark.slow
def test_the_interval_contains_the_true_mean_as_often_as_it_says():
    # Alarms at each event with probability 1/50, streams of 1,000 events: a binomial count, a little narrower than a
    # Poisson one, so that at least 95 % of the intervals contain 50. 2,000 streams: standard error 0.005.
    random = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        low, high = run_length(np.flatnonzero(random.random(1000) < 1 / 50), 1000).interval()
        inside += low <= 50 <= high
    assert inside / 2000 >= 0.95 - 3 * 0.005


def test_alarms_beyond_the_stream_are_refused():
    with pytest.raises(ValueError, match="a drift at 100 is not in a stream of 100 events"):
        run_length([100], 100)
    with pytest.raises(ValueError, match=r"confidence 95 is not in \(0, 1\)"):
        run_length([], 100).interval(95)


# ---------------------------------------------------------------------------------------------- prequential


def test_the_curves_of_five_events_by_hand():
    curves = prequential([1, 0, 1, 0, 0], [1, 1, 0, 0, 0])
    np.testing.assert_allclose(curves.accuracy, [1, 1 / 2, 1 / 3, 2 / 4, 3 / 5])
    # TP 1 throughout; FP 0, 1, 1, 1, 1; FN 0, 0, 1, 1, 1.
    np.testing.assert_allclose(curves.f1, [1, 2 / 3, 2 / 4, 2 / 4, 2 / 4])
    # Recall of 1: 1, 1, 1/2, 1/2, 1/2; of 0, once it was seen: 0, 0, 1/2, 2/3.
    np.testing.assert_allclose(curves.g_mean, [1, 0, 0, 1 / 2, math.sqrt(1 / 3)])


def test_f1_is_nan_until_the_positive_class_is_seen_or_predicted():
    np.testing.assert_array_equal(prequential([0, 0, 1], [0, 1, 1]).f1, [math.nan, 0, 2 / 3])


def test_a_class_that_left_the_window_is_left_out_of_g_mean():
    np.testing.assert_allclose(prequential([1, 0, 0, 0], [0, 0, 0, 1], window=2).g_mean, [0, 0, 1, 1 / 2])


def by_loop(truth, pred, classes, weight, last):
    """Accuracy, F1 of class 1 (of all with more than two classes) and G-mean of the events with their weights."""
    curves = []
    for end in range(1, len(truth) + 1):
        counts = np.zeros((classes, classes))
        for at in range(max(0, end - last), end):
            counts[truth[at], pred[at]] += weight ** (end - 1 - at)
        seen, said, right = counts.sum(1), counts.sum(0), counts.diagonal()
        recalls = [right[c] / seen[c] for c in range(classes) if seen[c]]
        scored = [1] if classes == 2 else range(classes)
        f1 = [2 * right[c] / (seen[c] + said[c]) for c in scored if seen[c] + said[c]]
        f1 = sum(f1) / len(f1) if f1 else math.nan
        curves.append((right.sum() / counts.sum(), f1, math.prod(recalls) ** (1 / len(recalls))))
    return np.array(curves).T


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize(
    "forget", [{}, {"fading": 0.9}, {"fading": 0.3}, {"window": 7}, {"window": 1}, {"window": 999}]
)
def test_the_curves_are_those_of_a_plain_loop(classes, forget):
    truth, pred = np.random.default_rng(classes).integers(classes, size=(2, 150))
    pred = np.where(np.random.default_rng(0).random(150) < 0.6, truth, pred)
    curves = prequential(truth, pred, labels=range(classes), **forget)
    expected = by_loop(truth, pred, classes, forget.get("fading", 1), forget.get("window", 150))
    # Sums of at most 150 products in another order: a few hundred roundings of 1e-16.
    np.testing.assert_allclose((curves.accuracy, curves.f1, curves.g_mean), expected, rtol=1e-12, atol=1e-13)


def test_the_totals_are_where_the_curves_end():
    truth, pred = np.random.default_rng(1).integers(2, size=(2, 1000))
    curves, total = prequential(truth, pred), totals(truth, pred)
    assert (total.accuracy, total.f1, total.g_mean) == (curves.accuracy[-1], curves.f1[-1], curves.g_mean[-1])


def test_the_positive_class_may_be_any_label():
    truth, pred = ["cat", "dog", "cow", "cow"], ["cat", "cow", "cow", "dog"]
    labels = ("cat", "dog", "cow")
    assert totals(truth, pred, labels=labels, positive="cow").f1 == 1 / 2
    assert totals(truth, pred, labels=labels).f1 == pytest.approx((1 + 0 + 1 / 2) / 3)
    with pytest.raises(ValueError, match="positive 'pig' is not one of"):
        totals(truth, pred, labels=labels, positive="pig")


def test_a_recall_that_faded_long_ago_is_not_made_of_the_last_digits_of_a_double():
    # 0.5 ** 1000 is 1e-301: class 1 counts for nothing by then, and until then its recall is what it was, 1/2 and more.
    truth = np.r_[1, 1, np.zeros(1100, int)]
    curve = prequential(truth, np.r_[0, 1, np.zeros(1100, int)], fading=0.5).g_mean
    np.testing.assert_allclose(curve[2:950], math.sqrt(2 / 3), rtol=1e-12)
    assert curve[-1] == 1


def test_nothing_gives_empty_curves_and_nan():
    assert prequential([], []).accuracy.size == 0
    assert math.isnan(totals([], []).g_mean)


@pytest.mark.parametrize(
    ("truth", "options", "message"),
    [
        ([0, 1], {}, "y_true has 2 labels, y_pred has 3"),
        ([0, 1, 2], {}, r"position 2: 2 in column 'y_true' is not one of the labels 0, 1"),
        ([0, 1, 1], {"fading": 1.0}, r"fading 1.0 is not in \(0, 1\)"),
        ([0, 1, 1], {"window": 0}, "window 0: at least one event must count"),
        ([0, 1, 1], {"window": 5, "fading": 0.9}, "by fading or by a window, not by both"),
    ],
)
def test_bad_predictions_are_refused(truth, options, message):
    with pytest.raises(ValueError, match=message):
        prequential(truth, [0, 1, 1], **options)
