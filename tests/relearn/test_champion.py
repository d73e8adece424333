"""Champion and challenger: a new model serves only after it has beaten the one that does, whatever comes in."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import fourrates as fr
from fourrates.relearn import ChampionRelearner, FitError
from fourrates.relearn.contest import BETS, Contest, class_weights

from .streams import Centroids, flipping, in_pieces, noisy, restless


def kinds(loop):
    return [one.kind for one in loop.decisions]


# ------------------------------------------------------------------------------------------------ the contest


def test_evidence_is_what_the_recursion_says():
    contest = Contest()
    contest.take(np.array([1.0, -0.5, 1.0]))
    by_hand = [((1 + b) + 1) * (1 - 0.5 * b) for b in BETS]
    assert contest.evidence == pytest.approx(np.mean([(r + 1) * (1 + b) for r, b in zip(by_hand, BETS, strict=True)]))
    assert (contest.wins, contest.losses) == (2, 1)


def test_models_as_good_as_each_other_are_rarely_exchanged():
    # R - n is a martingale if both are right equally often: on average at least `threshold` gains to a crossing. The
    # run length is about exponential, so the mean of 300 has a standard error of 6 %: three of them are allowed.
    random = np.random.default_rng(0)
    lengths = []
    for _ in range(300):
        contest, n = Contest(), 0
        while (crossed := contest.take(random.choice([-1.0, 1.0], 50), np.full(50, 50.0))) is None:
            n += 50
        lengths.append(n + crossed + 1)
    assert np.mean(lengths) > 50 * (1 - 3 * 0.06)


def test_a_better_challenger_wins_within_some_dozen_disagreements():
    random = np.random.default_rng(1)
    needed = []
    for _ in range(200):
        crossed = Contest().take(np.where(random.random(400) < 0.8, 1.0, -1.0), np.full(400, 50.0))
        needed.append(400 if crossed is None else crossed)
    assert np.median(needed) < 30


def test_a_rare_class_counts_more_and_no_example_more_than_one():
    weights = class_weights(np.array([900, 100]))
    assert weights[1] == 1
    assert 0.2 < weights[0] < 0.4  # half as accuracy, half as mean recall: (.5 + .5/1.8) / (.5 + .5/.2) = 0.26
    assert class_weights(np.array([5, 5])).tolist() == [1, 1]


# ------------------------------------------------------------------------------------------------ the loop


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


def test_one_at_a_time_equals_one_batch_for_several_classes():
    X, y = restless(1100, classes=4)
    whole, single = (
        ChampionRelearner(Centroids(), fr.FourRates(2_000, labels=range(4))).fit(X[:200], y[:200]) for _ in range(2)
    )
    together = whole.run(X[200:], y[200:])
    assert in_pieces(single, X[200:], y[200:], range(1, 900)).tolist() == together.tolist()
    assert single.decisions == whole.decisions
    assert len(whole.models) > 2


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


def test_a_concept_that_comes_back_finds_its_model():
    X, y = flipping(6000, 2000)
    y[4000:] = X[4000:, 0] > 0
    loop = ChampionRelearner(GaussianNB()).fit(X[:500], y[:500])
    said = loop.run(X[500:], y[500:])
    back = [life for life in loop.models if life.why == "return" and life.start >= 3500]
    assert back
    assert back[0].window is None or back[0].window.stop <= 1500 + 20  # it learnt before the first change
    assert back[0].start < 3550
    assert np.mean(said[3550:] == y[4050:]) > 0.95


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(), DecisionTreeClassifier(min_samples_leaf=20)])
def test_where_nothing_changes_the_loop_does_not_hurt(model):
    # 5 seeds of 5,500 predictions that both get wrong by noise: the difference of two shares of right ones on the same
    # examples has a standard error of at most sqrt(0.2 / 27,500) = 0.003 if they part on a fifth. Four are allowed.
    ahead = []
    for seed in range(5):
        X, y = noisy(seed=seed)
        alone = model.fit(X[:500], y[:500]).predict(X[500:])
        said = ChampionRelearner(model).fit(X[:500], y[:500]).run(X[500:], y[500:])
        ahead.append(np.mean(said == y[500:]) - np.mean(alone == y[500:]))
    assert np.mean(ahead) > -0.012


def test_a_slow_change_without_an_alarm_is_followed():
    random = np.random.default_rng(4)
    X = random.normal(size=(8000, 2))
    angle = np.linspace(0, np.pi, 8000)
    y = (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0).astype(int)
    alone = LogisticRegression().fit(X[:500], y[:500]).predict(X[500:])
    said = ChampionRelearner(LogisticRegression()).fit(X[:500], y[:500]).run(X[500:], y[500:])
    assert np.mean(alone == y[500:]) < 0.6
    assert np.mean(said == y[500:]) > 0.9


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


def test_what_is_kept_and_what_is_learnt_is_bounded():
    X, y = noisy(12_000)
    loop = ChampionRelearner(Centroids(), memory=200, max_examples=800, keep=2).fit(X[:200], y[:200])
    loop.run(X[200:], y[200:])
    assert (
        len(loop.challengers) <= 2 + 1 + 2 + 1
    )  # memories of 200 and 800, one since the drift, two held, the champion
    assert len(loop._examples.positions) == 800
    # Memories: 11,800 / 100 + 11,800 / 400; since each drift, and since the start, at most log(11,800 / 20) / log(1.5).
    assert loop.fits <= 1 + 118 + 30 + 17 * (1 + len(loop.drifts))


def test_a_pickled_loop_goes_on_the_same():
    X, y = restless()
    one = ChampionRelearner(GaussianNB()).fit(X[:200], y[:200])
    one.run(X[200:777], y[200:777])
    one.predict(X[:3], ids=["a", "b", "c"])
    other = pickle.loads(pickle.dumps(one))
    assert one.run(X[777:], y[777:]).tolist() == other.run(X[777:], y[777:]).tolist()
    assert one.decisions == other.decisions
    assert other.pending == 3


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


def test_a_constant_feature_does_no_harm():
    X, y = flipping()
    X[:, 1] = 7.0
    said = ChampionRelearner(GaussianNB()).fit(X[:300], y[:300]).run(X[300:], y[300:])
    assert np.mean(said[-500:] == y[-500:]) > 0.9


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
