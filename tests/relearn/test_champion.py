"""Champion and challengers: each has as much say as it has earned, whatever comes in."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import fourrates as fr
from fourrates.relearn import ChampionRelearner, FitError
from fourrates.relearn.candidate import Held
from fourrates.relearn.contest import Contest
from fourrates.relearn.measure import class_weights, values
from fourrates.relearn.rules import AFTER_DRIFT, LONGEST, RATES, SHARE, Rules

from .streams import Centroids, flipping, in_pieces, noisy, restless


def kinds(loop):
    return [one.kind for one in loop.decisions]


# ------------------------------------------------------------------------------------------------ the contest


def contest(members, measure="accuracy"):
    """Between models that weigh the same, the champion first."""
    found = [Held(None, None, str(i)) for i in range(members)]
    for one in found:
        one.weights = np.full(len(RATES), 1 / members)
    return Contest(found, Rules(2, measure))


def sure(right):
    """Forecasts of members that are certain, and right where they should be, of examples that are all of class 1."""
    found = np.zeros((*np.shape(right), 2))
    found[..., 1] = right
    found[..., 0] = ~np.asarray(right)
    return found, np.ones(np.shape(right)[1], np.uint16)


def test_weights_are_what_the_recursion_says():
    two = contest(2)
    two.take(*sure([[True, False], [False, False]]))
    first = np.exp(RATES) / (np.exp(RATES) + 1)
    for _ in range(2):  # the second example, which neither predicts, moves nothing but the share
        first = SHARE / 2 + (1 - SHARE) * first
    assert two.weights == pytest.approx(np.array([first, 1 - first]))
    two.settle()
    assert [(one.wins, one.losses) for one in two.members] == [(0, 0), (0, 1)]


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
        behind.append(right[1].mean() - contest(5).take(*sure(right)).mean())
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
    assert np.mean(contest(5).take(forecasts, truths) == truths) > alone + 0.015


def test_what_is_not_a_number_counts_the_same_for_predictions_and_weights():
    two = contest(2)
    said = two.take(np.array([[[0.0, np.nan]] * 3, [[0.8, 0.2]] * 3]), np.ones(3, np.uint16))
    assert said.tolist() == [1, 1, 1]
    two.settle()
    assert two.weights[0, 0] > two.weights[1, 0]
    assert [one.losses for one in two.members] == [0, 3]


def test_a_probability_counts_by_how_far_it_is_from_even():
    two = contest(2)
    forecasts = np.array([[[0.45, 0.55]], [[0.9, 0.1]]])
    assert two.take(forecasts, np.ones(1, np.uint16)).tolist() == [0]


def recorded(rules, truths, guesses):
    """Count examples for which all rules said the same."""
    every = Contest([Held(None, None, "0")], rules)
    every.weights[:] = 1.0
    every.take(np.eye(2)[None, guesses], np.asarray(truths, np.uint16))
    return every.rules


@pytest.mark.parametrize(("measure", "said"), [("accuracy", 0), ("mean", 0), ("f1", 1), ("g_mean", 1)])
def test_a_class_that_matters_more_is_predicted_where_the_measure_asks_for_it(measure, said):
    half = np.repeat([0, 1], [95, 5])  # of the rare class is found
    one = Contest([Held(None, None, "0")], recorded(Rules(2, measure), np.repeat([0, 1], [90, 10]), half))
    one.weights[:] = 1.0
    assert one.take(np.array([[[0.6, 0.4]]]), np.ones(1, np.uint16)).tolist() == [said]


# ------------------------------------------------------------------------------------------------ the rules


def played(measure, forecasts, truths):
    """The predictions of members of which the first is the first model, the second the shortest memory."""
    found = contest(len(forecasts), measure)
    for place in (0, 1):
        found.members[place].alone = place
    return found, found.take(np.asarray(forecasts, float), np.asarray(truths, np.uint16))


def test_the_slow_vote_is_followed_where_models_are_weak_and_err_each_in_its_own_way():
    # Seven models, right in .6 each by its own chance. Weights of the quick vote run after luck; the mean of seven is
    # right in .71. On 4,000 labels a share has a standard error of 0.008; the quick vote alone reaches .65.
    random = np.random.default_rng(3)
    truths = random.integers(0, 2, 4_000)
    says = np.where(random.random((7, 4_000)) < 0.6, truths, 1 - truths)
    found, said = played("accuracy", np.eye(2)[says], truths)
    assert found.rules.names[found.rules.followed] == "slow vote"
    assert np.mean(said == truths) > 0.68


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["f1", "g_mean"])
def test_probabilities_that_are_far_off_are_taken_for_what_they_predict(measure):
    # The first model finds half of the rare class; its probability of it is hardly ever below .2, so weighing classes
    # would call everything rare.
    random = np.random.default_rng(4)
    truths = (random.random(4_000) < 0.06).astype(int)
    found = random.random(4_000) < np.where(truths, 0.5, 0.05)
    positive = np.where(found, 0.9, 0.4)
    forecasts = np.stack([1 - positive, positive], axis=1)
    contest, said = played(measure, [forecasts, forecasts], truths)
    assert "classes weighed" not in contest.rules.names[contest.rules.followed]
    assert np.mean(said[1_000:] == found[1_000:]) > 0.99


def test_the_first_model_is_followed_alone_where_nothing_does_better():
    # The others are wrong together more often than not: any vote is at most as good as the first alone.
    random = np.random.default_rng(5)
    truths = random.integers(0, 2, 4_000)
    first = np.where(random.random(4_000) < 0.62, truths, 1 - truths)
    others = np.where(random.random(4_000) < 0.58, truths, 1 - truths)
    found, said = played("accuracy", np.eye(2)[[first, others, others, others, others]], truths)
    assert found.rules.names[found.rules.followed] == "the first model alone"
    assert np.mean(said == truths) > np.mean(first == truths) - 0.01


def test_a_rule_that_fails_after_a_drift_is_left_within_some_dozen_labels():
    rules = Rules(2, "accuracy")
    first = rules.names.index("the first model alone")

    def count(times, wrong):
        """Have this number of examples of class 1 on record, which these rules did not predict."""
        said = np.ones((times, len(rules.counts[0])), int)
        said[:, wrong] = 0
        rules.counts[0, :, 1] += times
        rules.counts[1] += [np.bincount(one, minlength=2) for one in said.T]
        rules.counts[2, :, 1] += said.sum(axis=0)

    count(14_850, wrong=[])
    count(150, wrong=range(1, 1 + first))  # the votes err once in a hundred, the first model never
    rules.shorten(AFTER_DRIFT)
    assert rules.best() == first
    count(20, wrong=[1 + first])
    assert rules.best() != first


def test_a_record_is_bounded_and_what_was_served_is_counted_whole():
    one = contest(1, "f1")
    one.take(*sure(np.ones((1, 2 * LONGEST + 5), bool)))
    rules = one.rules
    assert rules.counts[0, 0].sum() == 2 * LONGEST + 5
    assert rules.counts[0, 1].sum() == LONGEST + 5


@pytest.mark.slow
def test_a_better_challenger_wins_within_a_dozen_disagreements_however_long_the_champion_was_ahead():
    random = np.random.default_rng(1)
    ahead = contest(2)
    ahead.take(*sure(np.array([[True] * 500, [False] * 500])))
    needed = []
    for _ in range(200):
        two = copy.deepcopy(ahead)
        better = random.random(100) < 0.8
        needed.append(two.take(*sure(np.array([~better, better])), 3.0).size)
    assert np.median(needed) <= 14


def test_a_crossing_stops_the_contest():
    two = contest(2)
    said = two.take(*sure(np.array([[False] * 9, [True] * 9])), 3.0)
    assert said.size == 2  # e is less than 3, its square is not
    two.settle()
    assert [one.wins for one in two.members] == [0, 2]


@pytest.mark.parametrize("measure", ["accuracy", "f1", "g_mean", "mean"])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_example_is_worth_what_it_moves_the_measure_by(measure, classes):
    random = np.random.default_rng(classes)
    truths = random.choice(classes, 40_000, p=[0.7, 0.3] if classes == 2 else [0.6, 0.3, 0.1])
    guesses = np.where(random.random(40_000) < 0.7, truths, random.integers(0, classes, 40_000))
    counts = [np.bincount(codes, minlength=classes) for codes in (truths, guesses, truths[truths == guesses])]
    worth = class_weights(np.array(counts, float), measure)

    def value(more_truths, more_guesses):
        t, g = (np.concatenate([a, b]).astype(int) for a, b in ((truths, more_truths), (guesses, more_guesses)))
        recalls = [np.mean(g[t == c] == c) for c in range(classes)]
        f1 = [2 * np.sum((t == c) & (g == c)) / (np.sum(t == c) + np.sum(g == c)) for c in range(classes)]
        return {
            "accuracy": np.mean(t == g),
            "g_mean": np.prod(recalls) ** (1 / classes),
            "f1": f1[1] if classes == 2 else np.mean(f1),
        }

    def slopes(name):
        # 20 more of a class, right or wrong, the wrong ones spread over the others: a two-thousandth of the stream
        found = []
        for c in range(classes):
            same, others = np.full(20, c), np.resize([o for o in range(classes) if o != c], 20)
            found.append(value(same, same)[name] - value(same, others)[name])
        shares = np.bincount(truths) / truths.size
        return np.array(found) / np.dot(shares, found)

    names = ["accuracy", "f1", "g_mean"] if measure == "mean" else [measure]
    now = value([], [])
    assert values(np.array(counts, float), measure) == pytest.approx(np.mean([now[name] for name in names]))
    expected = np.mean([slopes(name) for name in names], axis=0)
    assert worth / worth[0] == pytest.approx(expected / expected[0], rel=0.01)


# ------------------------------------------------------------------------------------------------ the loop


@pytest.mark.slow
@pytest.mark.parametrize("model", [Centroids(), DecisionTreeClassifier(max_depth=3, random_state=0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_batches_cut_anywhere_give_the_same(model, seed):
    X, y = restless(seed=seed)
    whole = ChampionRelearner(model).fit(X[:200], y[:200])
    together = whole.run(X[200:], y[200:])
    assert kinds(whole).count("promote") > 1
    random = np.random.default_rng(seed)
    for cuts in (random.integers(0, 1300, 6), random.integers(0, 1300, 100)):
        pieces = ChampionRelearner(model).fit(X[:200], y[:200])
        assert in_pieces(pieces, X[200:], y[200:], cuts).tolist() == together.tolist()
        assert pieces.decisions == whole.decisions
        assert pieces.models == whole.models
        assert pieces.drifts == whole.drifts


@pytest.mark.slow
def test_one_at_a_time_equals_one_batch_for_several_classes():
    X, y = restless(1100, classes=4)
    whole, single = (
        ChampionRelearner(Centroids(), fr.FourRates(2_000, labels=range(4))).fit(X[:200], y[:200]) for _ in range(2)
    )
    together = whole.run(X[200:], y[200:])
    assert in_pieces(single, X[200:], y[200:], range(1, 900)).tolist() == together.tolist()
    assert single.decisions == whole.decisions
    assert len(whole.models) > 2


@pytest.mark.slow
def test_a_drift_is_answered_by_a_challenger_from_its_start_on():
    X, y = flipping(4000, 2000)
    loop = ChampionRelearner(GaussianNB()).fit(X[:500], y[:500])
    said = loop.run(X[500:], y[500:])
    drift = loop.drifts[0]
    assert 1500 <= drift.at < 1520
    assert abs(drift.started - 1500) < 60  # found after a handful of errors, it cannot be dated any better
    new = next(one for one in loop.decisions if one.kind == "promote" and one.at > drift.at)
    assert new.window.start >= drift.window.start
    assert new.wins > new.losses
    assert new.at < 1600
    assert np.mean(said[1600:] == y[2100:]) > 0.95


@pytest.mark.slow
def test_a_concept_that_comes_back_finds_its_model():
    X, y = flipping(6000, 2000)
    y[4000:] = X[4000:, 0] > 0
    loop = ChampionRelearner(GaussianNB()).fit(X[:500], y[:500])
    said = loop.run(X[500:], y[500:])
    back = [life for life in loop.models if life.why == "return" and life.start >= 3500]
    assert back
    assert back[0].window is None  # the model that `fit` trained, before the first change
    assert back[0].start < 3600  # a model learnt meanwhile from some fifty examples is hard to beat by then
    assert np.mean(said[3550:] == y[4050:]) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(), DecisionTreeClassifier(min_samples_leaf=20)])
def test_where_nothing_changes_the_loop_does_not_hurt(model):
    # 3 seeds of 5,500 predictions that both get wrong by noise: the difference of two shares of right ones on the same
    # examples has a standard error of at most sqrt(0.2 / 16,500) = 0.0035 if they part on a fifth. Four are allowed.
    ahead = []
    for seed in range(3):
        X, y = noisy(seed=seed)
        alone = model.fit(X[:500], y[:500]).predict(X[500:])
        said = ChampionRelearner(model).fit(X[:500], y[:500]).run(X[500:], y[500:])
        ahead.append(np.mean(said == y[500:]) - np.mean(alone == y[500:]))
    assert np.mean(ahead) > -0.014


@pytest.mark.slow
def test_a_slow_change_without_an_alarm_is_followed():
    random = np.random.default_rng(4)
    X = random.normal(size=(8000, 2))
    angle = np.linspace(0, np.pi, 8000)
    y = (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0).astype(int)
    alone = LogisticRegression().fit(X[:500], y[:500]).predict(X[500:])
    said = ChampionRelearner(LogisticRegression()).fit(X[:500], y[:500]).run(X[500:], y[500:])
    assert np.mean(alone == y[500:]) < 0.6
    assert np.mean(said == y[500:]) > 0.9


@pytest.mark.slow
def test_a_drift_that_is_dated_too_early_has_a_challenger_from_the_alarm_on():
    X, y = flipping(4000, 2000)
    y = np.where(np.random.default_rng(0).random(4000) < np.linspace(0, 0.3, 4000), 1 - y, y)  # worse all the time
    loop = ChampionRelearner(GaussianNB()).fit(X[:500], y[:500])
    loop.run(X[500:], y[500:])
    for drift in loop.drifts:
        if drift.at + 1 - drift.window.start >= loop.min_examples:
            begun = [one.at for one in loop.decisions if one.about == f"all since {drift.at + 1:,}"]
            assert begun
            assert begun[0] == drift.at + 1 + loop.min_examples
            break
    else:
        pytest.fail("no drift was dated that far back")


@pytest.mark.slow
def test_predictions_are_the_vote_and_not_the_champion_alone():
    X, y = noisy()
    tree = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
    loop = ChampionRelearner(tree).fit(X[:500], y[:500])
    loop.run(X[500:3000], y[500:3000])
    members = [one for one in (loop.champion, *loop.challengers) if one.model is not None]
    turns = [one for one in loop.decisions if one.kind == "follow"]
    assert all(one.about != other.about for one, other in pairwise(turns))
    assert "predictions follow: slow vote, mean 0." in str(turns[-1])
    weights = [one.weights[1] for one in members]
    mean = np.tensordot(weights, [one.model.predict_proba(X[3000:4000]) for one in members], 1)
    said = loop.predict(X[3000:4000])
    assert said.tolist() == mean.argmax(axis=1).tolist()
    assert np.mean(said != loop.model.predict(X[3000:4000])) > 0.02


def test_every_decision_is_kept_with_its_evidence():
    X, y = restless()
    loop = ChampionRelearner(Centroids()).fit(X[:200], y[:200])
    loop.run(X[200:], y[200:])
    promoted = [one for one in loop.decisions if one.kind == "promote"]
    exchanged = [life for life in loop.models if life.why in ("challenger", "return")]
    assert [one.at for one in promoted] == [life.start for life in exchanged]
    assert [one.window for one in promoted] == [life.window for life in exchanged]
    assert all(one.evidence >= loop.threshold and one.wins > 0 for one in promoted)
    assert kinds(loop).count("drift") == len(loop.drifts)
    assert sum(one.kind in ("fit", "refit") for one in loop.decisions) <= loop.fits - 1
    assert "right alone" in str(promoted[0])
    assert sum(life.n for life in loop.models) == 1300


@pytest.mark.slow
def test_what_is_kept_and_what_is_learnt_is_bounded():
    X, y = noisy(12_000)
    loop = ChampionRelearner(Centroids(), memory=200, max_examples=800, keep=2).fit(X[:200], y[:200])
    loop.run(X[200:], y[200:])
    # Memories of 200 and 800, the first model, two since the drift and one that led before, two held.
    assert len(loop.challengers) <= 2 + 1 + 2 + 3
    assert len(loop._examples.positions) == 800
    # Memories: 11,800 / 50 + 11,800 / 200; two since each drift, one since the start, at most log(590) / log(1.5) each.
    assert loop.fits <= 1 + 236 + 59 + 17 * (1 + 2 * len(loop.drifts))


@pytest.mark.slow
def test_a_pickled_loop_goes_on_the_same():
    X, y = restless()
    one = ChampionRelearner(GaussianNB()).fit(X[:200], y[:200])
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
    late, prompt = (ChampionRelearner(Centroids()).fit(X[:200], y[:200]) for _ in range(2))
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
def test_a_model_put_to_service_by_hand_is_challenged_too():
    X, y = flipping(3000, 0)
    wrong = GaussianNB().fit(X[:200], 1 - y[:200])
    loop = ChampionRelearner(GaussianNB()).serve(wrong)
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
    loop = ChampionRelearner(LogisticRegression(), fr.FourRates(2_000, labels=["leaves", "buys"]))
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
        ask(ChampionRelearner(GaussianNB()))


@pytest.mark.slow
def test_a_fit_that_raises_is_told_and_the_champion_serves_on(monkeypatch):
    X, y = flipping()
    loop = ChampionRelearner(Brittle()).fit(X[:300], y[:300])
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


def test_features_that_are_nan_are_told_by_the_model_and_the_champion_serves_on():
    X, y = flipping()
    loop = ChampionRelearner(Brittle()).fit(X[:300], y[:300])
    X[700:, 1] = np.nan
    with pytest.raises(FitError, match="NaN"):
        loop.run(X[300:], y[300:])
    assert loop.events == 1700
    assert loop.models[0].why == "first"


@pytest.mark.slow
def test_a_constant_feature_does_no_harm():
    X, y = flipping()
    X[:, 1] = 7.0
    said = ChampionRelearner(GaussianNB()).fit(X[:300], y[:300]).run(X[300:], y[300:])
    assert np.mean(said[-500:] == y[-500:]) > 0.9


@pytest.mark.slow
def test_a_stream_of_one_class_is_never_learnt_from_alone():
    X, y = flipping(3000, 3000)
    y[500:] = 1
    loop = ChampionRelearner(Brittle(), min_class=5, memory=100).fit(X[:300], y[:300])
    loop.run(X[300:], y[300:])
    learnt = [one.window for one in loop.decisions if one.kind in ("fit", "refit")]
    truth = y[300:]
    for window in learnt:
        inside = (
            np.concatenate([y[300 + window.start : 300], truth[: window.stop]])
            if window.start < 0
            else truth[window.start : window.stop]
        )
        assert (inside == 0).sum() >= 5
        assert (inside == 1).sum() >= 5


@pytest.mark.slow
def test_a_memory_reaches_back_for_a_rare_class():
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 2))
    y = (X[:, 0] > 2.2).astype(int)  # 1.4 %
    loop = ChampionRelearner(Centroids(), memory=100).fit(X[:500], y[:500])
    loop.run(X[500:], y[500:])
    shortest = [one.window for one in loop.decisions if one.about == "the newest 100" and one.kind == "fit"]
    assert min(map(len, shortest)) > 100


def test_fewer_examples_than_any_window_are_simply_predicted():
    X, y = flipping(15)
    loop = ChampionRelearner(GaussianNB()).serve(GaussianNB().fit(X, X[:, 0] > 0))
    assert loop.run(X[:7], y[:7]).size == 7
    assert loop.fits == 0
    assert kinds(loop) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"threshold": 0.5}, "threshold 0.5"),
        ({"threshold": float("inf")}, "threshold inf"),
        ({"threshold": float("nan")}, "threshold nan"),
        ({"measure": "auc"}, "measure 'auc' is not one of"),
        ({"min_class": 0}, "min_class 0"),
        ({"min_examples": 5}, "min_examples 5 is less than 10"),
        ({"max_examples": 10}, "max_examples 10 is less than 20"),
        ({"keep": -1}, "keep -1"),
        ({"memory": 5}, "memory 5"),
        ({"model": 3}, "model must be"),
        ({"detector": "LFR"}, "detector must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(arguments, error):
    with pytest.raises((ValueError, TypeError), match=error):
        ChampionRelearner(**{"model": GaussianNB(), **arguments})
