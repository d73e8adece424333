"""The loop around a model: the same as a plain one, whatever way the stream comes in."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import fourrates as fr
from fourrates.retrain import FitError, Retrainer

from .streams import Centroids, flipping, in_pieces, restless

# Each with parameters that make a short stream hold warnings, lapsed ones too, and several drifts.
DETECTORS = {
    fr.LFR: {"warn": 0.05, "detect": 0.001},
    fr.baselines.NFR: {"warn": 0.1, "detect": 0.001, "minimum": 10},
    fr.baselines.DDM: {"warn": 1.0, "detect": 2.0, "minimum": 10},
    fr.baselines.DDMOCI: {"warn": 1.0, "detect": 4.0, "minimum": 10},
    fr.baselines.EDDM: {"minimum": 10},
    fr.baselines.PerfSim: {"warn": 0.97, "detect": 0.9, "batch": 20},
    fr.baselines.ThreeMeasures: {"warn": 2.0, "detect": 6.0, "batch": 20, "history": 3},
}
every = pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)


def make(kind, **more):
    return kind(**DETECTORS[kind], **more)


def plain_loop(model, detector, X, y, first, min_examples=100, max_examples=10_000):
    """The loop as one would write it down: every example is remembered, nothing happens in blocks."""
    serving, watcher, began, since = clone(model).fit(*first), detector.clone(), 0, None
    predictions, drifts, windows = [], [], []
    for i in range(len(y)):
        predictions.append(serving.predict(X[i : i + 1])[0])
        if since is None:
            drift = watcher.update(y[i], predictions[-1])
            if drift is not None:
                since = began + drift.since
                drifts.append((since, began + drift.at, drift.changes, drift.confusion))
        if since is not None and i + 1 - since >= min_examples:
            window = range(max(since, i + 1 - max_examples), i + 1)
            if len(set(y[window].tolist())) > 1:
                serving, watcher, began, since = clone(model).fit(X[window], y[window]), detector.clone(), i + 1, None
                windows.append(window)
    return predictions, drifts, windows


def story(retrainer):
    """What happened, in the terms of the plain loop."""
    drifts = [(drift.since, drift.at, drift.changes, drift.confusion) for drift in retrainer.drifts]
    return drifts, [life.window for life in retrainer.models[1:]]


class Fussy(ClassifierMixin, BaseEstimator):
    """Says what the sign of the first feature says; refuses to learn while `broken` is set."""

    broken = False
    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        if self.broken and type(self).fits > 1:
            raise ArithmeticError("no luck today")
        self.sign_ = 1 if np.mean((X[:, 0] > 0) == y) > 0.5 else -1
        return self

    def predict(self, X):
        return (self.sign_ * X[:, 0] > 0).astype(int)


class Counting(Fussy):
    """Counts what it is asked."""

    asked = ()

    def predict(self, X):
        type(self).asked += (len(X),)
        return super().predict(X)


@pytest.fixture
def fussy():
    Fussy.fits, Fussy.broken = 0, False
    yield Fussy
    Fussy.fits, Fussy.broken = 0, False


# ---------------------------------------------------------------------------------------------- the loop


@pytest.mark.slow
@every
@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        (Centroids(), 30, 10_000),
        (Centroids(), 120, 130),
        (Centroids(), 2, 40),
        (DecisionTreeClassifier(max_depth=3, random_state=0), 30, 10_000),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_batches_cut_anywhere_give_what_a_plain_loop_gives(kind, model, least, most, seed):
    X, y = restless(seed=seed)
    first = X[:200], y[:200]
    predictions, drifts, windows = plain_loop(model, make(kind), X[200:], y[200:], first, least, most)
    assert len(windows) > 0
    random = np.random.default_rng(least)
    for cuts in ([], random.integers(0, 1300, 5), random.integers(0, 1300, 100)):
        retrainer = Retrainer(model, make(kind), min_examples=least, max_examples=most).fit(*first)
        assert in_pieces(retrainer, X[200:], y[200:], cuts).tolist() == predictions
        assert story(retrainer) == (drifts, windows)
        assert retrainer.events == 1300


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_one_at_a_time_equals_one_batch_for_several_classes(seed):
    X, y = restless(1800, seed, classes=4)
    first = X[:200], y[:200]
    whole, single = (
        Retrainer(Centroids(), make(fr.LFR, labels=range(4)), min_examples=50).fit(*first) for _ in range(2)
    )
    together = whole.run(X[200:], y[200:])
    assert in_pieces(single, X[200:], y[200:], range(1, 1600)).tolist() == together.tolist()
    assert single.models == whole.models
    assert len(whole.models) > 2
    assert single.detector.to_bytes() == whole.detector.to_bytes()


@pytest.mark.slow
def test_streams_of_this_suite_hold_lapsed_warnings():
    X, y = restless()
    retrainer = Retrainer(Centroids(), make(fr.LFR), min_examples=30).fit(X[:200], y[:200])
    lapsed, warned = 0, False
    for i in range(200, 1500):
        retrainer.run(X[i : i + 1], y[i : i + 1])
        lapsed += warned and not retrainer.detector.warning_detected and not retrainer.collecting
        warned = retrainer.detector.warning_detected
    assert lapsed > 10


@pytest.mark.slow
def test_the_log_tells_each_models_life():
    X, y = restless()
    retrainer = Retrainer(Centroids(), make(fr.LFR), min_examples=80).fit(X[:200], y[:200])
    predictions = retrainer.run(X[200:], y[200:])
    lives = retrainer.models
    assert [life.why for life in lives] == ["first"] + ["drift"] * (len(lives) - 1)
    assert [life.stop for life in lives] == [life.start for life in lives[1:]] + [None]
    assert lives[0].window is None
    assert [life.drift for life in lives if life.drift] == retrainer.drifts
    for life, after in itertools.pairwise(lives):
        assert life.start <= life.drift.since <= life.drift.at < life.stop
        assert after.window.start == life.drift.since
        assert after.window.stop == life.stop
    for life in lives:
        served = slice(life.start, life.stop)
        truth, said = y[200:][served], predictions[served]
        assert (life.n, life.correct) == (truth.size, np.sum(truth == said))
        assert life.accuracy == np.mean(truth == said)
        assert life.confusion[1][0] == np.sum((truth == 1) & (said == 0))
    assert "trained on" in str(lives[1])


def test_predictions_run_in_large_blocks_and_only_as_far_as_needed():
    Counting.asked = ()
    X, y = flipping(30_000, 20_000)
    retrainer = Retrainer(Counting(), fr.LFR(), min_examples=500).fit(X[:100], y[:100])
    retrainer.run(X, y)
    assert len(retrainer.models) == 2
    assert len(Counting.asked) < 30
    # What the first model said beyond the drift is of use while examples are collected; of the last block, at most
    # 2,048 examples, those behind the end of the collection are asked again.
    assert 30_000 <= sum(Counting.asked) <= 30_000 + 2_048


def test_a_new_model_starts_with_a_fresh_detector():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR(), min_examples=100).fit(X[:200], y[:200])
    retrainer.run(X, y)
    last = retrainer.models[-1]
    assert retrainer.detector.events == retrainer.events - last.start == last.n


def test_the_model_and_the_detector_given_stay_as_they_are():
    X, y = flipping()
    model, detector = GaussianNB(), fr.LFR()
    Retrainer(model, detector).fit(X[:200], y[:200]).run(X, y)
    assert not hasattr(model, "theta_")
    assert detector.events == 0


def test_a_pickled_retrainer_goes_on_the_same():
    X, y = restless()
    one = Retrainer(GaussianNB(), make(fr.baselines.DDM), min_examples=40).fit(X[:200], y[:200])
    one.run(X[200:777], y[200:777])
    one.predict(X[:3], ids=["a", "b", "c"])
    other = pickle.loads(pickle.dumps(one))
    assert one.run(X[777:], y[777:]).tolist() == other.run(X[777:], y[777:]).tolist()
    assert one.models == other.models
    assert other.pending == 3


# ---------------------------------------------------------------------------------------------- the window


def test_too_small_a_window_is_filled_while_the_old_model_serves():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR(), min_examples=300).fit(X[:200], y[:200])
    retrainer.run(X[:1100], y[:1100])
    old, (drift,) = retrainer.model, retrainer.drifts
    assert retrainer.collecting
    assert 1000 <= drift.since < drift.at < 1100
    retrainer.run(X[1100 : drift.since + 299], y[1100 : drift.since + 299])
    assert retrainer.collecting
    assert retrainer.model is old
    ready = drift.since + 299
    retrainer.run(X[ready : ready + 1], y[ready : ready + 1])
    assert not retrainer.collecting
    assert retrainer.models[-1].window == range(drift.since, drift.since + 300)
    assert np.mean(retrainer.run(X[1500:], y[1500:]) == y[1500:]) > 0.9


def test_a_window_with_a_single_class_waits_for_the_other():
    X, y = flipping(3000, 1000)
    X[1000:2000, 0] = -np.abs(X[1000:2000, 0])  # all positive, while the old model says negative
    y[1000:2000] = 1
    for cuts in ([], range(1, 3000)):
        retrainer = Retrainer(Centroids(), fr.LFR(), min_examples=50, max_examples=400).fit(X[:200], y[:200])
        in_pieces(retrainer, X, y, cuts)
        assert retrainer.drifts[0].at < 1100
        second = retrainer.models[1]
        other = 2000 + int(np.argmin(y[2000:]))
        assert second.window == range(other + 1 - 400, other + 1)


def test_a_stream_of_one_class_is_watched_and_never_learnt_from():
    X = np.abs(flipping(9000)[0])
    X[1500:, 0] *= -1
    Counting.asked = ()
    retrainer = Retrainer(Counting(), fr.LFR(), max_examples=500).fit(*flipping(200))
    retrainer.run(X, np.ones(9000, int))
    assert max(Counting.asked) == 2048
    assert len(retrainer.drifts) == 1
    assert retrainer.collecting
    assert len(retrainer.models) == 1


def test_what_a_window_holds_is_bounded():
    X, y = flipping(40_000, 100)
    X = np.hstack([X, np.zeros((40_000, 20))])
    y[100:] = 1  # a window of one class for ever
    retrainer = Retrainer(GaussianNB(), fr.LFR(), min_examples=50, max_examples=100).fit(X[:90], y[:90])
    sizes = []
    for part in np.array_split(np.arange(40_000), 40):
        retrainer.run(X[part], y[part])
        sizes.append(len(pickle.dumps(retrainer)))
    assert retrainer.collecting
    assert max(sizes) < sizes[0] + 100  # a longer number here and there
    assert max(sizes) < 100 * X[0].nbytes + 10_000


# ---------------------------------------------------------------------------------------------- late labels


@every
@pytest.mark.parametrize("delay", [1, 7, 400])
def test_late_labels_in_any_order_count_as_they_arrive(kind, delay):
    X, y = restless()
    random = np.random.default_rng(delay)
    arrival = np.argsort(np.arange(1300) + random.uniform(0, delay, 1300))
    late, prompt = (Retrainer(Centroids(), make(kind), min_examples=40).fit(X[:200], y[:200]) for _ in range(2))
    X, y = X[200:], y[200:]
    prompt.run(X[arrival], y[arrival])
    drifts, asked = [], 0
    for part in np.array_split(arrival, 90):
        needed = part.max() + 1
        if needed > asked:
            late.predict(X[asked:needed], ids=range(asked, needed))
            asked = needed
        drifts += late.observe(part, y[part])
    assert len(drifts) > 1
    assert drifts == late.drifts == prompt.drifts
    assert late.models == prompt.models
    assert {name: count for name, count in late.join.counts.items() if count} == {"pairs": 1300}


def test_predictions_beyond_the_bound_are_dropped_oldest_first():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR(), max_pending=5).fit(X[:200], y[:200])
    retrainer.predict(X[:4], ids=range(4))
    retrainer.predict(X[4:8], ids=range(4, 8))
    assert (retrainer.pending, retrainer.join.counts["displaced"]) == (5, 3)
    retrainer.observe([1, 7, 3], y[[1, 7, 3]])
    assert (retrainer.pending, retrainer.events, retrainer.join.counts["late_labels"]) == (3, 2, 1)


@every
def test_labels_that_come_before_their_predictions_count_when_these_are_made(kind):
    X, y = restless()
    early, prompt = (Retrainer(Centroids(), make(kind), min_examples=40).fit(X[:200], y[:200]) for _ in range(2))
    X, y = X[200:], y[200:]
    said = prompt.run(X, y).tolist()
    assert len(prompt.drifts) > 1
    early.observe(range(len(y)), y)
    assert (early.events, early.join.waiting_labels) == (0, len(y))
    assert [early.predict(X[i : i + 1], ids=[i]).item() for i in range(len(y))] == said
    assert early.drifts == prompt.drifts
    assert early.models == prompt.models


def test_what_waits_longer_than_the_longest_wait_leaves():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR(), max_wait=10).fit(X[:200], y[:200])
    retrainer.predict(X[:3], ids=["a", "b", "c"], times=[0, 5, 20])
    retrainer.observe(["a", "b", "c"], y[:3], times=21)
    assert (retrainer.events, retrainer.join.counts["expired"], retrainer.join.counts["late_labels"]) == (1, 2, 2)


def test_what_comes_twice_counts_once():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR()).fit(X[:200], y[:200])
    retrainer.predict(X[:3], ids=["a", "b", "a"])
    retrainer.observe(["a", "a", "z"], [0, 1, 0])
    retrainer.observe(["a"], [1])
    assert retrainer.models[-1].n == retrainer.events == 1
    assert (retrainer.pending, retrainer.join.waiting_labels) == (1, 1)
    assert (retrainer.join.counts["repeated_predictions"], retrainer.join.counts["repeated_labels"]) == (1, 2)


def test_an_error_of_the_model_in_the_midst_of_late_labels_loses_none():
    class Moody(Centroids):
        broken = False

        def predict(self, X):
            if Moody.broken and len(X) > 5:
                raise ArithmeticError("not today")
            return super().predict(X)

    X, y = restless()
    one, prompt = (Retrainer(Moody(), make(fr.baselines.DDM), min_examples=40).fit(X[:200], y[:200]) for _ in range(2))
    X, y = X[200:], y[200:]
    prompt.run(X, y)
    one.predict(X, ids=range(len(y)))
    Moody.broken = True  # the next model is asked again about what was predicted before it came
    with pytest.raises(ArithmeticError):
        one.observe(range(len(y)), y)
    assert 0 < one.events < len(y)
    Moody.broken = False
    one.observe([], [])
    assert one.models == prompt.models


def test_what_waits_takes_bounded_memory():
    X, y = flipping(1000)
    X = np.hstack([X, np.zeros((1000, 48))])
    retrainer = Retrainer(Centroids(), fr.LFR()).fit(X[:200], y[:200])
    retrainer.run(X, y)
    tracemalloc.start()
    for start in range(0, 20_000, 1000):
        retrainer.predict(X, ids=range(start, start + 1000))
        retrainer.observe(range(start, start + 999), y[:999])  # one of each batch stays without a label
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert retrainer.pending == 20
    assert kept < X.nbytes / 4  # each whole batch would take as much as X


def test_features_that_change_after_the_prediction_do_not_matter():
    X, y = flipping(1200, 400)
    retrainer = Retrainer(GaussianNB(), fr.LFR(), min_examples=100).fit(X[:200], y[:200])
    mine = X.copy()
    retrainer.predict(mine, ids=range(1200))
    mine[:] = 0
    retrainer.observe(range(1200), y)
    assert retrainer.models[-1].accuracy > 0.95


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (["c"], ValueError, "ids has 1 items, y_pred has 2"),
        ([None, "a"], (TypeError, ValueError), "position 0"),
        ("bc", TypeError, "'bc'"),
    ],
)
def test_ids_that_do_not_fit_change_nothing(ids, error, message):
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR()).fit(X[:200], y[:200])
    retrainer.predict(X[:1], ids=["a"])
    with pytest.raises(error, match=message):
        retrainer.predict(X[:2], ids=ids)
    assert retrainer.pending == 1
    retrainer.observe(["a"], [0])
    assert retrainer.events == 1


# ---------------------------------------------------------------------------------------------- bad input


def test_a_fit_that_raises_names_the_window_and_the_old_model_serves_on(fussy):
    X, y = flipping()
    retrainer = Retrainer(fussy(), fr.LFR(), min_examples=100).fit(X[:200], y[:200])
    old, fussy.broken = retrainer.model, True
    with pytest.raises(FitError, match="no luck today") as caught:
        retrainer.run(X[:1150], y[:1150])
    since = retrainer.drifts[0].since
    assert caught.value.window == range(since, since + 100)
    assert f"{since:,} to {since + 99:,}" in str(caught.value)
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert caught.value.predictions.tolist() == old.predict(X[:1150]).tolist()
    assert retrainer.model is old
    assert retrainer.collecting
    assert retrainer.events == 1150
    fussy.broken = False
    retrainer.run(X[1150 : since + 199], y[1150 : since + 199])
    assert retrainer.model is old
    retrainer.run(X[since + 199 :], y[since + 199 :])
    assert retrainer.models[1].window == range(since, since + 200)
    assert retrainer.models[1].accuracy == 1


def test_a_fit_that_always_raises_is_tried_again_after_as_many_examples(fussy):
    X, y = flipping()
    retrainer = Retrainer(fussy(), fr.LFR(), min_examples=100, max_examples=150).fit(X[:200], y[:200])
    fussy.broken = True
    windows = []
    for i in range(2000):
        try:
            retrainer.run(X[i : i + 1], y[i : i + 1])
        except FitError as error:
            windows.append(error.window)
    since = retrainer.drifts[0].since
    assert windows[0] == range(since, since + 100)
    assert [window.stop for window in windows] == list(range(since + 100, 2001, 100))
    assert {len(window) for window in windows[1:]} == {150}
    whole = Retrainer(fussy(), fr.LFR(), min_examples=100, max_examples=150)
    fussy.fits = 0
    whole.fit(X[:200], y[:200])
    with pytest.raises(FitError) as caught:
        whole.run(X, y)
    assert caught.value.window == windows[0]
    assert caught.value.__notes__ == [f"the first of {len(windows)} failures in this batch"]
    assert whole.models == retrainer.models


def test_labels_may_fail_to_be_learnt_from_when_they_come_late(fussy):
    X, y = flipping()
    retrainer = Retrainer(fussy(), fr.LFR()).fit(X[:200], y[:200])
    fussy.broken = True
    retrainer.predict(X, ids=range(2000))
    with pytest.raises(FitError):
        retrainer.observe(range(1150), y[:1150])
    assert (retrainer.events, retrainer.pending) == (1150, 850)


def test_nan_reaches_the_model_untouched():
    X, y = restless(900)
    X[::7, 1] = np.nan
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    retrainer = Retrainer(model, make(fr.LFR), min_examples=60).fit(X[:200], y[:200])
    expected = clone(model).fit(X[:200], y[:200]).predict(X[200:500])
    predictions = retrainer.run(X[200:], y[200:])
    first = retrainer.models[0].stop
    assert len(retrainer.models) > 1
    assert predictions[: min(first, 300)].tolist() == expected[:first].tolist()
    with pytest.raises(ValueError, match="NaN"):
        Retrainer(SVC(), fr.LFR()).fit(X, y)


def test_without_a_model_nothing_can_be_predicted():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR())
    assert retrainer.models == ()
    for action in (lambda: retrainer.predict(X), lambda: retrainer.run(X, y)):
        with pytest.raises(RuntimeError, match=r"fit\(X, y\)"):
            action()
    assert retrainer.events == 0


def test_labels_the_detector_does_not_know_are_named_and_change_nothing():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR()).fit(X[:200], y[:200])
    bad = y.copy()
    bad[1700] = 7
    with pytest.raises(ValueError, match="position 1700: 7 in column 'y'") as caught:
        retrainer.run(X, bad)
    assert "labels=" in caught.value.__notes__[0]
    assert retrainer.events == 0
    stranger = GaussianNB().fit(X, np.where(y, "yes", "no"))
    with pytest.raises(ValueError, match=r"'(yes|no)' in column 'prediction'"):
        retrainer.serve(stranger).predict(X)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"min_examples": 1}, "min_examples 1 is less than 2"),
        ({"min_examples": 20, "max_examples": 10}, "max_examples 10 is less than 20"),
        ({"max_pending": 0}, "max_pending 0"),
        ({"model": 3}, "model must be"),
        ({"detector": "LFR"}, "detector must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(arguments, error):
    with pytest.raises((ValueError, TypeError), match=error):
        Retrainer(**{"model": GaussianNB(), "detector": fr.LFR(), **arguments})


def test_examples_and_labels_must_be_equally_many():
    X, y = flipping()
    retrainer = Retrainer(GaussianNB(), fr.LFR()).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="X has 10 examples, y has 9"):
        retrainer.run(X[:10], y[:9])
    with pytest.raises(ValueError, match="ids has 2 items, y_true has 1"):
        retrainer.observe([1, 2], [0])
    assert retrainer.run(X[:0], y[:0]).size == 0


# ---------------------------------------------------------------------------------------------- kinds of input


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=["a", "b"], index=np.arange(len(X)) % 7),
        lambda X: pl.DataFrame(X, schema=["a", "b"]),
        scipy.sparse.csr_array,
        scipy.sparse.coo_array,
    ],
    ids=["list", "pandas", "polars", "csr", "coo"],
)
def test_tables_of_any_kind_give_what_an_array_gives(convert):
    X, y = flipping()
    model = LogisticRegression()
    plain = Retrainer(model, fr.LFR()).fit(X[:200], y[:200])
    expected = plain.run(X, y)
    other = Retrainer(model, fr.LFR()).fit(convert(X[:200]), y[:200].tolist())
    parts = [other.run(convert(X[a : a + 250]), y[a : a + 250].tolist()) for a in range(0, 2000, 250)]
    assert np.concatenate(parts).tolist() == expected.tolist()
    assert other.models == plain.models
    assert len(other.models) == 2
    late = Retrainer(model, fr.LFR(), max_pending=2500).fit(convert(X[:200]), y[:200])
    for start in range(0, 2000, 250):
        late.predict(convert(X[start : start + 250]), ids=range(start, start + 250))
    late.observe(range(2000), y)
    assert late.models == plain.models


def test_labels_may_be_words():
    X, y = flipping()
    words = np.where(y, "buys", "leaves")
    detector = fr.LFR(labels=["leaves", "buys"])
    retrainer = Retrainer(SVC(), detector).fit(X[:200], words[:200])
    assert set(retrainer.run(X, words)) == {"buys", "leaves"}
    assert len(retrainer.models) == 2


def test_a_model_learnt_elsewhere_can_serve():
    X, y = flipping()
    model = GaussianNB().fit(X[:200], y[:200])
    retrainer = Retrainer(GaussianNB(), fr.LFR()).serve(model)
    assert retrainer.model is model
    retrainer.run(X[:1050], y[:1050])
    assert retrainer.collecting
    retrainer.serve(GaussianNB().fit(X[1000:1050], y[1000:1050]))
    retrainer.run(X[1050:], y[1050:])
    assert not retrainer.collecting
    assert [(life.start, life.stop, life.why) for life in retrainer.models] == [
        (0, 1050, "first"),
        (1050, None, "hand"),
    ]


class Perceptron:
    """A model as river has them: one example at a time, each a dict."""

    def __init__(self):
        self.weights = dict.fromkeys("ab", 0.0)

    def clone(self):
        return Perceptron()

    def predict_one(self, x):
        return sum(self.weights[name] * x[name] for name in x) > 0

    def learn_one(self, x, y):
        for name in x:
            self.weights[name] += (y - self.predict_one(x)) * x[name]


def of_river():
    pytest.importorskip("river")
    from river import preprocessing, tree

    return preprocessing.StandardScaler() | tree.HoeffdingTreeClassifier(grace_period=20)


@pytest.mark.slow
@pytest.mark.parametrize("make_model", [Perceptron, of_river])
def test_river_models_learn_from_the_window(make_model):
    model = make_model()
    X, y = flipping(3000, 1500)
    examples = [{"a": a, "b": b} for a, b in X.tolist()]
    whole, single = (Retrainer(model, fr.LFR(), min_examples=200).fit(examples[:300], y[:300]) for _ in range(2))
    predictions = whole.run(iter(examples), y)
    assert [single.run([x], [label])[0] for x, label in zip(examples, y, strict=True)] == predictions.tolist()
    assert whole.models == single.models
    assert len(whole.models) == 2
    fresh = model.clone()
    for i in whole.models[1].window:
        fresh.learn_one(examples[i], int(y[i]))
    assert predictions[whole.models[1].start :].tolist() == [
        fresh.predict_one(x) for x in examples[whole.models[1].start :]
    ]
    with pytest.raises(TypeError, match="dicts"):
        whole.predict(X)


def swapping(size=12_000, seed=0):
    """One of two features says it, and every 3,000 the other one does; a tenth of the labels is wrong."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 2))
    y = (X[np.arange(size), np.arange(size) // 3_000 % 2] > 0).astype(int)
    return X, np.where(random.random(size) < 0.1, 1 - y, y)


def test_a_detector_that_would_hold_begins_with_a_new_normal_at_every_alarm():
    """As one that restarts: a model that is replaced leaves no drift open."""
    X, y = swapping()
    told = []
    for after in ("hold", "restart"):
        loop = Retrainer(Centroids(), fr.FourRates(2_000, after=after)).fit(X[:500], y[:500])
        said = loop.run(X[500:], y[500:]).tolist()
        assert loop.detector.open is None
        told.append((said, [(drift.at, drift.window, drift.changes) for drift in loop.drifts]))
    assert told[0] == told[1]
    assert len(told[0][1]) >= 3
