"""The fixed-share vote: its weights, its theorem, and the loop around it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import fourrates as fr
from fourrates.retrain import ChampionRetrainer, FitError
from fourrates.retrain.fixed_share import RATE, SHARE, FixedShare

from .streams import Centroids, flipping, in_pieces, noisy, restless


def kinds(loop):
    return [one.kind for one in loop.decisions]


# ------------------------------------------------------------------------------------------------ the vote


def sure(right):
    """Forecasts of models that are certain, and right where they should be, of examples that are all of class 1."""
    return np.eye(2)[np.asarray(right, int)], np.ones(np.shape(right)[1], np.uint16)


def test_weights_are_what_the_recursion_says():
    _, vote = FixedShare.of(2, 2, "accuracy").run(*sure([[True, False], [False, False]]))
    first = 1 / (1 + np.exp(-RATE))
    for _ in range(2):  # nobody predicts the second example, so only the share moves weight
        first = SHARE / 2 + (1 - SHARE) * first
    assert vote.weights == pytest.approx([first, 1 - first])


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_is_within_the_bound_of_the_theorem(seed):
    # Herbster and Warmuth: the loss by the weights is at most that of any sequence of models with c changes, plus the
    # price of the sequence, over (1 - exp(-eta)) / eta. Held against the sequence that knows the best of each part.
    random = np.random.default_rng(seed)
    models, parts, size = 6, 8, 250
    accuracy = np.repeat(random.random((models, parts)), size, axis=1)
    right = random.random(accuracy.shape) < accuracy
    forecasts, truths = sure(right)
    vote, loss = FixedShare.of(models, 2, "accuracy"), 0.0
    for at in range(truths.size):
        loss += vote.weights @ ~right[:, at]
        _, vote = vote.run(forecasts[:, at : at + 1], truths[at : at + 1])
    best = (~right).reshape(models, parts, size).sum(axis=2).min(axis=0).sum()
    changes = parts - 1
    price = np.log(models) + changes * np.log(models / SHARE) - (truths.size - parts) * np.log(1 - SHARE)
    assert loss <= (RATE * best + price) / (1 - np.exp(-RATE))


@pytest.mark.slow
def test_the_vote_is_never_far_behind_the_best_of_several():
    # Five models right in .6, .55, .5, ... of 3,000: the vote is nearer to the best than half way to the second. Held
    # against the best on the same labels, where they part on a tenth at most, the mean over 8 seeds has a standard
    # error of sqrt(0.1 / 24,000) = 0.002. Errors that are independent of each other cancel in a vote, so all five are
    # wrong where one uniform number is too large.
    behind = []
    for seed in range(8):
        drawn = np.random.default_rng(seed).random(3_000)
        right = drawn < np.array([0.5, 0.6, 0.55, 0.45, 0.4])[:, None]
        predictions, _ = FixedShare.of(5, 2, "accuracy").run(*sure(right))
        behind.append(right[1].mean() - predictions.mean())
    assert np.mean(behind) < 0.025


@pytest.mark.slow
def test_a_vote_of_equals_is_better_than_each_of_them():
    # Five models see what decides with errors of their own, which a mean evens out in part. On 20,000 examples the
    # difference of two shares of right predictions has a standard error of at most sqrt(0.3 / 20,000) = 0.004.
    random = np.random.default_rng(0)
    log_odds = random.normal(0, 2, 20_000)
    truths = (random.random(20_000) < 1 / (1 + np.exp(-log_odds))).astype(np.uint16)
    positive = 1 / (1 + np.exp(-log_odds - random.normal(0, 2, (5, 20_000))))
    forecasts = np.stack([1 - positive, positive], axis=2)
    alone = (forecasts.argmax(axis=2) == truths).mean(axis=1).max()
    predictions, _ = FixedShare.of(5, 2, "accuracy").run(forecasts, truths)
    assert np.mean(predictions == truths) > alone + 0.015


def test_a_better_model_leads_within_a_dozen_disagreements_however_long_it_was_behind():
    _, vote = FixedShare.of(2, 2, "accuracy").run(*sure([[True] * 500, [False] * 500]))
    _, vote = vote.run(*sure([[False] * 12, [True] * 12]))
    assert vote.weights[1] > 0.9


def test_a_probability_counts_by_how_far_it_is_from_even():
    vote = FixedShare.of(2, 2, "accuracy")
    assert vote.predict(np.array([[[0.45, 0.55]], [[0.9, 0.1]]])).tolist() == [0]


@pytest.mark.parametrize(("measure", "predicted"), [("accuracy", 0), ("f1", 1), ("g_mean", 1)])
def test_a_class_that_matters_more_is_predicted_if_the_measure_asks_for_it(measure, predicted):
    truths, half = np.repeat([0, 1], [90, 10]), np.repeat([0, 1], [95, 5])  # of the rare class is found
    _, vote = FixedShare.of(1, 2, measure).run(np.eye(2)[None, half], truths.astype(np.uint16))
    assert vote.predict(np.array([[[0.6, 0.4]]])).tolist() == [predicted]


@pytest.mark.parametrize("measure", ["accuracy", "f1", "g_mean"])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_example_is_worth_what_it_moves_the_measure_by(measure, classes):
    random = np.random.default_rng(classes)
    truths = random.choice(classes, 40_000, p=[0.7, 0.3] if classes == 2 else [0.6, 0.3, 0.1])
    preds = np.where(random.random(40_000) < 0.7, truths, random.integers(0, classes, 40_000))
    record = [np.bincount(codes, minlength=classes) for codes in (truths, preds, truths[truths == preds])]
    worth = FixedShare(measure, np.ones(1), np.array(record, float)).worth()

    def value(more_truths, more_preds):
        t, g = (np.concatenate([a, b]).astype(int) for a, b in ((truths, more_truths), (preds, more_preds)))
        recalls = [np.mean(g[t == c] == c) for c in range(classes)]
        f1 = [2 * np.sum((t == c) & (g == c)) / (np.sum(t == c) + np.sum(g == c)) for c in range(classes)]
        return {
            "accuracy": np.mean(t == g),
            "g_mean": np.prod(recalls) ** (1 / classes),
            "f1": f1[1] if classes == 2 else np.mean(f1),
        }[measure]

    # 20 more of a class, right or wrong, the wrong ones spread over the others: a two-thousandth of the stream
    slopes = []
    for c in range(classes):
        same, others = np.full(20, c), np.resize([o for o in range(classes) if o != c], 20)
        slopes.append(value(same, same) - value(same, others))
    assert worth == pytest.approx(np.array(slopes) / max(slopes), rel=0.01)


# ------------------------------------------------------------------------------------------------ the loop


@pytest.mark.slow
@pytest.mark.parametrize("model", [Centroids(), DecisionTreeClassifier(max_depth=3, random_state=0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_batches_cut_anywhere_give_the_same(model, seed):
    X, y = restless(seed=seed)
    whole = ChampionRetrainer(model).fit(X[:200], y[:200])
    together = whole.run(X[200:], y[200:])
    assert whole.drifts
    random = np.random.default_rng(seed)
    for cuts in (random.integers(0, 1300, 6), random.integers(0, 1300, 100)):
        pieces = ChampionRetrainer(model).fit(X[:200], y[:200])
        assert in_pieces(pieces, X[200:], y[200:], cuts).tolist() == together.tolist()
        assert pieces.decisions == whole.decisions
        assert pieces.models == whole.models
        assert pieces.drifts == whole.drifts


@pytest.mark.slow
def test_one_at_a_time_equals_one_batch_for_several_classes():
    X, y = restless(1100, classes=4)
    whole, single = (
        ChampionRetrainer(Centroids(), fr.FourRates(2_000, labels=range(4))).fit(X[:200], y[:200]) for _ in range(2)
    )
    together = whole.run(X[200:], y[200:])
    assert in_pieces(single, X[200:], y[200:], range(1, 900)).tolist() == together.tolist()
    assert single.decisions == whole.decisions
    assert len(whole.models) > 2


@pytest.mark.slow
def test_a_drift_is_answered_by_models_trained_on_what_came_since():
    X, y = flipping(4000, 2000)
    loop = ChampionRetrainer(GaussianNB()).fit(X[:500], y[:500])
    predictions = loop.run(X[500:], y[500:])
    drift = loop.drifts[0]
    assert 1500 <= drift.at < 1520
    assert abs(drift.started - 1500) < 60  # found after a handful of errors, it cannot be dated any better
    started, alarmed = (
        next(one for one in loop.decisions if one.kind == "fit" and one.about == name)
        for name in ("all since the drift began", "all since its alarm")
    )
    assert started.window.start == drift.window.start
    assert alarmed.window == range(drift.at + 1, drift.at + 21)
    assert np.mean(predictions[1600:] == y[2100:]) > 0.95


@pytest.mark.slow
def test_a_concept_that_comes_back_finds_the_first_model():
    X, y = flipping(6000, 2000)
    y[4000:] = X[4000:, 0] > 0
    loop = ChampionRetrainer(GaussianNB()).fit(X[:500], y[:500])
    loop.run(X[500:4030], y[500:4030])
    assert loop.experts[0].window is None
    assert loop.experts[0].weight > 0.5
    predictions = loop.run(X[4030:], y[4030:])
    assert np.mean(predictions == y[4030:]) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(), DecisionTreeClassifier(min_samples_leaf=20)])
def test_where_nothing_changes_the_loop_does_not_hurt(model):
    # 3 seeds of 5,500 predictions that both get wrong by noise: the difference of two shares of right ones on the same
    # examples has a standard error of at most sqrt(0.2 / 16,500) = 0.0035 if they part on a fifth. Four are allowed.
    ahead = []
    for seed in range(3):
        X, y = noisy(seed=seed)
        alone = model.fit(X[:500], y[:500]).predict(X[500:])
        said = ChampionRetrainer(model).fit(X[:500], y[:500]).run(X[500:], y[500:])
        ahead.append(np.mean(said == y[500:]) - np.mean(alone == y[500:]))
    assert np.mean(ahead) > -0.014


@pytest.mark.slow
def test_a_slow_change_without_an_alarm_is_followed():
    random = np.random.default_rng(4)
    X = random.normal(size=(8000, 2))
    angle = np.linspace(0, np.pi, 8000)
    y = (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0).astype(int)
    alone = LogisticRegression().fit(X[:500], y[:500]).predict(X[500:])
    said = ChampionRetrainer(LogisticRegression()).fit(X[:500], y[:500]).run(X[500:], y[500:])
    assert np.mean(alone == y[500:]) < 0.6
    assert np.mean(said == y[500:]) > 0.9


@pytest.mark.slow
def test_predictions_are_the_vote_and_not_the_heaviest_model_alone():
    X, y = noisy()
    tree = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
    loop = ChampionRetrainer(tree).fit(X[:500], y[:500])
    loop.run(X[500:3000], y[500:3000])
    weights = [expert.weight for expert in loop.experts]
    assert sum(weights) == pytest.approx(1)
    assert loop.model is loop.experts[int(np.argmax(weights))].model
    mean = np.tensordot(weights, [expert.model.predict_proba(X[3000:4000]) for expert in loop.experts], 1)
    predictions = loop.predict(X[3000:4000])
    assert predictions.tolist() == mean.argmax(axis=1).tolist()
    assert np.mean(predictions != loop.model.predict(X[3000:4000])) > 0.02


def test_every_drift_and_every_fit_is_a_decision():
    X, y = restless()
    loop = ChampionRetrainer(Centroids()).fit(X[:200], y[:200])
    loop.run(X[200:], y[200:])
    assert [one.about for one in loop.decisions if one.kind == "drift"] == [str(drift) for drift in loop.drifts]
    assert [life.drift for life in loop.models] == [*loop.drifts, None]
    assert kinds(loop).count("fit") == loop.fits - 1
    assert str(loop.decisions[0]) == "50: retrained the newest 200, on -150 to 49"
    assert sum(life.n for life in loop.models) == 1300


@pytest.mark.slow
def test_what_is_kept_and_what_is_trained_is_bounded():
    X, y = noisy(12_000)
    loop = ChampionRetrainer(Centroids(), memory=200, max_examples=800).fit(X[:200], y[:200])
    loop.run(X[200:], y[200:])
    assert len(loop.experts) == 1 + 2 + 2  # the first model, windows of 200 and 800, two since the drift
    assert len(loop._examples.positions) == 800
    # Windows: 11,800 / 50 + 11,800 / 200. Two since each drift: log(40) / log(1.25) fits while they grow to 800, then
    # one every 200 labels.
    assert loop.fits <= 1 + 236 + 59 + 17 * 2 * len(loop.drifts) + 2 * 59


def test_what_is_not_a_number_counts_for_nothing():
    X, y = flipping(400, 400)

    class Unsure(GaussianNB):
        def predict_proba(self, X):
            return np.full((len(X), 2), np.nan)

    loop = ChampionRetrainer(GaussianNB()).fit(X, y)
    expected = loop.predict(X)
    loop.experts[0].model = Unsure().fit(X, y)
    assert loop.predict(X).tolist() == expected.tolist()


@pytest.mark.slow
def test_a_pickled_loop_goes_on_the_same():
    X, y = restless()
    one = ChampionRetrainer(GaussianNB()).fit(X[:200], y[:200])
    one.run(X[200:777], y[200:777])
    one.predict(X[:3], ids=["a", "b", "c"])
    other = pickle.loads(pickle.dumps(one))
    assert one.run(X[777:], y[777:]).tolist() == other.run(X[777:], y[777:]).tolist()
    assert one.decisions == other.decisions
    assert other.pending == 3


@pytest.mark.slow
def test_late_labels_in_any_order_count_as_they_arrive():
    X, y = restless()
    arrival = np.argsort(np.arange(1300) + np.random.default_rng(0).uniform(0, 90, 1300))
    late, prompt = (ChampionRetrainer(Centroids()).fit(X[:200], y[:200]) for _ in range(2))
    X, y = X[200:], y[200:]
    prompt.run(X[arrival], y[arrival])
    asked, drifts = 0, []
    for part in np.array_split(arrival, 40):
        if part.max() >= asked:
            late.predict(X[asked : part.max() + 1], ids=range(asked, part.max() + 1))
            asked = part.max() + 1
        drifts += late.observe(part, y[part])
    assert drifts == late.drifts == prompt.drifts
    assert late.decisions == prompt.decisions
    assert late.models == prompt.models


@pytest.mark.slow
def test_a_model_put_to_service_by_hand_is_outvoted_if_it_is_wrong():
    X, y = flipping(3000, 0)
    wrong = GaussianNB().fit(X[:200], 1 - y[:200])
    loop = ChampionRetrainer(GaussianNB()).serve(wrong)
    said = loop.run(X, y)
    assert loop.models[0].why == "first"
    assert np.mean(said[1000:] == y[1000:]) > 0.95
    loop.serve(wrong)
    assert loop.model is wrong
    assert np.mean(loop.run(X[:500], y[:500])[100:] == y[100:500]) > 0.95


@pytest.mark.slow
def test_frames_and_words_are_welcome():
    X, y = flipping(2500)
    words = np.where(y, "buys", "leaves")
    frame = pd.DataFrame(X, columns=["a", "b"])
    loop = ChampionRetrainer(LogisticRegression(), fr.FourRates(2_000, labels=["leaves", "buys"]))
    said = loop.fit(frame[:300], words[:300]).run(frame[300:], words[300:])
    assert np.mean(said[1000:] == words[1300:]) > 0.95


# ------------------------------------------------------------------------------------------------ bad input


class Brittle(ClassifierMixin, BaseEstimator):
    """As the sign of the first feature says; refuses to learn from NaN, and from anything once `broken` is set."""

    broken = False

    def fit(self, X, y):
        if Brittle.broken:
            raise ArithmeticError("no luck today")
        if np.isnan(X).any():
            raise ValueError("Input X contains NaN")
        self.sign_ = 1 if np.mean((X[:, 0] > 0) == y) > 0.5 else -1
        return self

    def predict(self, X):
        return (self.sign_ * X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("ask", [lambda loop: loop.predict([[1.0]]), lambda loop: loop.run([[1.0]], [0])])
def test_a_loop_without_a_model_says_how_to_give_it_one(ask):
    with pytest.raises(RuntimeError, match="no model serves yet: fit"):
        ask(ChampionRetrainer(GaussianNB()))


@pytest.mark.slow
def test_a_fit_that_raises_is_reported_and_the_models_serve_on(monkeypatch):
    X, y = flipping()
    loop = ChampionRetrainer(Brittle()).fit(X[:300], y[:300])
    first = loop.model
    monkeypatch.setattr(Brittle, "broken", True)
    with pytest.raises(FitError, match="no luck today") as caught:
        loop.run(X[300:], y[300:])
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert loop.model is first
    assert loop.events == 1700
    assert caught.value.predictions.tolist() == first.predict(X[300:]).tolist()
    assert "fail" in kinds(loop)
    monkeypatch.setattr(Brittle, "broken", False)
    assert np.mean(loop.run(X[1000:], y[1000:])[-300:] == y[-300:]) == 1


def test_features_the_model_rejects_are_reported_and_the_models_serve_on():
    X, y = flipping()
    loop = ChampionRetrainer(Brittle()).fit(X[:300], y[:300])
    X[700:, 1] = np.nan
    with pytest.raises(FitError, match="NaN"):
        loop.run(X[300:], y[300:])
    assert loop.events == 1700
    assert loop.models[0].why == "first"


@pytest.mark.slow
def test_a_constant_feature_does_no_harm():
    X, y = flipping()
    X[:, 1] = 7.0
    said = ChampionRetrainer(GaussianNB()).fit(X[:300], y[:300]).run(X[300:], y[300:])
    assert np.mean(said[-500:] == y[-500:]) > 0.9


@pytest.mark.slow
def test_no_model_is_trained_on_one_class_alone():
    X, y = flipping(3000, 3000)
    y[500:] = 1
    loop = ChampionRetrainer(Brittle(), memory=100).fit(X[:300], y[:300])
    loop.run(X[300:], y[300:])
    learnt = [one.window for one in loop.decisions if one.kind == "fit"]
    truth = y[300:]
    for window in learnt:
        inside = (
            np.concatenate([y[300 + window.start : 300], truth[: window.stop]])
            if window.start < 0
            else truth[window.start : window.stop]
        )
        assert (inside == 0).sum() >= 5
        assert (inside == 1).sum() >= 5


def test_fewer_examples_than_any_window_are_simply_predicted():
    X, y = flipping(15)
    loop = ChampionRetrainer(GaussianNB()).serve(GaussianNB().fit(X, X[:, 0] > 0))
    assert loop.run(X[:7], y[:7]).size == 7
    assert loop.fits == 0
    assert kinds(loop) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"measure": "auc"}, "measure 'auc' is not one of"),
        ({"max_examples": 10}, "max_examples 10 is less than 20"),
        ({"memory": 5}, "memory 5"),
        ({"model": 3}, "model must be"),
        ({"detector": "LFR"}, "detector must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(arguments, error):
    with pytest.raises((ValueError, TypeError), match=error):
        ChampionRetrainer(**{"model": GaussianNB(), **arguments})
