"""The scikit-learn adapter: its checks, pipelines, cross validation, and the drift it is there for."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import polars as pl
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import fourrates as fr
from fourrates.adapters.sklearn import RetrainingClassifier


@parametrize_with_checks(
    [
        RetrainingClassifier(LogisticRegression()),
        RetrainingClassifier(DecisionTreeClassifier(random_state=0), fr.baselines.DDM()),
    ]
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def swapped():
    """Two features that swap their roles at 3,000."""
    X = np.random.default_rng(1).normal(size=(6_000, 2))
    return X, np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0)


def test_after_a_drift_it_has_learnt_the_new_concept(swapped):
    X, y = swapped
    model = RetrainingClassifier(LogisticRegression()).fit(X[:500], y[:500])
    assert model.score(X[5_000:], y[5_000:]) < 0.6
    for start in range(500, 5_000, 250):
        assert model.partial_fit(X[start : start + 250], y[start : start + 250]) is model
    (drift,) = model.drifts_
    assert 2_500 <= drift.at < 2_600
    assert model.score(X[5_000:], y[5_000:]) > 0.95


def test_batches_of_any_size_give_the_same(swapped):
    X, y = swapped
    one = RetrainingClassifier(LogisticRegression()).fit(X[:500], y[:500]).partial_fit(X[500:], y[500:])
    many = clone(one).fit(X[:500], y[:500])
    for part in np.split(np.arange(500, 6_000), [700, 701, 3_010, 3_050]):
        many.partial_fit(X[part], y[part])
    assert many.drifts_ == one.drifts_
    np.testing.assert_array_equal(many.predict_proba(X), one.predict_proba(X))


def test_the_first_partial_fit_learns_and_may_name_classes_that_come_later():
    X, y = make_classification(600, n_classes=3, n_informative=4, random_state=0)
    first = np.flatnonzero(y < 2)[:200]
    model = RetrainingClassifier(GaussianNB()).partial_fit(X[first], y[first], classes=[0, 1, 2])
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (600, 3)
    assert not probabilities[:, 2].any()
    model.partial_fit(X, y)
    assert {change.rate for drift in model.drifts_ for change in drift.changes} <= {
        f"{kind}:{label}" for kind in ("recall", "precision") for label in range(3)
    }


def test_the_detector_given_is_the_one_that_watches_and_stays_as_it_was(swapped):
    X, y = swapped
    detector = fr.LFR(sides="down", positive=False)
    model = RetrainingClassifier(LogisticRegression(), detector).fit(X[:500], y[:500]).partial_fit(X[500:], y[500:])
    assert detector.events == 0
    assert model.retrainer_.detector.parameters == {**detector.parameters, "labels": [False, True]}


def test_it_stands_in_a_pipeline_and_in_cross_validation(swapped):
    X, y = swapped
    inside = make_pipeline(StandardScaler(), RetrainingClassifier(LogisticRegression()))
    around = RetrainingClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    for model in (inside, around):
        scores = cross_val_score(model, X[:3_000], y[:3_000], cv=TimeSeriesSplit(3))
        assert scores.min() > 0.95
    search = GridSearchCV(around, {"estimator__logisticregression__C": [0.1, 1.0], "min_examples": [50, 100]}, cv=3)
    assert search.fit(X[:500], y[:500]).best_score_ > 0.9


def test_frames_reach_the_model_as_they_are(swapped):
    X, y = swapped
    frame = pl.DataFrame(X, schema=["first", "second"])
    model = RetrainingClassifier(LogisticRegression()).fit(frame[:500], y[:500]).partial_fit(frame[500:], y[500:])
    np.testing.assert_array_equal(model.feature_names_in_, ["first", "second"])
    assert len(model.drifts_) == 1
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame.rename({"first": "third"}), y)


def test_a_pickle_goes_on_where_it_was(swapped):
    X, y = swapped
    model = RetrainingClassifier(LogisticRegression()).fit(X[:500], y[:500]).partial_fit(X[500:3_010], y[500:3_010])
    twin = pickle.loads(pickle.dumps(model))
    assert twin.partial_fit(X[3_010:], y[3_010:]).drifts_ == model.partial_fit(X[3_010:], y[3_010:]).drifts_
    assert len(twin.drifts_) == 1


def test_one_class_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="y has 1 class"):
        RetrainingClassifier(GaussianNB()).fit([[0.0], [1.0]], [1, 1])
