"""Two models compared: the verdicts, the interval that holds at every look, and what cannot be compared."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.comparison import STAKES, _bounds, _side_by_side

LEVEL = 0.025


def draw(random, size, tpr, tnr=0.95, positives=0.3):
    truth = random.random(size) < positives
    return truth, *(np.where(random.random(size) < np.where(truth, one, tnr), truth, ~truth) for one in tpr)


def shadow(size=6_000, tpr=(0.62, 0.78), seed=1):
    truth, first, second = draw(np.random.default_rng(seed), size, tpr)
    return {"y": truth * 1, "v1": first * 1, "v2": second * 1}


def canary(share, size=12_000, tpr=(0.62, 0.78), seed=1):
    random = np.random.default_rng(seed)
    truth, first, second = draw(random, size, tpr)
    new = random.random(size) < share
    return {"y": truth * 1, "p": np.where(new, second, first) * 1, "version": np.where(new, "v2", "v1")}


@pytest.mark.parametrize(
    ("tpr", "verdict"), [((0.62, 0.78), "better"), ((0.78, 0.62), "worse"), ((0.7, 0.7), "not worse")]
)
def test_a_shadow_is_better_worse_or_not_worse(tpr, verdict):
    answer = fr.compare(shadow(20_000, tpr), truth="y", pred=("v1", "v2"), margin=0.05)
    assert (answer.verdict, answer.models, answer.paired) == (verdict, ("v1", "v2"), True)
    assert answer.rates["tpr"].verdict == verdict
    assert answer.rates["tpr"].lower < tpr[1] - tpr[0] < answer.rates["tpr"].upper


@pytest.mark.parametrize("share", [0.5, 0.1, 0.9])
def test_a_canary_is_compared_with_the_traffic_it_has(share):
    answer = fr.compare(canary(share), truth="y", pred="p", by="version", models=("v1", "v2"), margin=0.05)
    assert (answer.verdict, answer.rates["tpr"].verdict, answer.paired) == ("better", "better", False)
    turned = fr.compare(canary(share), truth="y", pred="p", by="version", models=("v2", "v1"), margin=0.05)
    assert (turned.verdict, turned.rates["tpr"].difference) == ("worse", -answer.rates["tpr"].difference)


def test_one_recall_that_is_worse_makes_the_verdict():
    random = np.random.default_rng(5)
    truth, first = draw(random, 20_000, (0.7,))
    second = np.where(random.random(20_000) < 0.9, truth, ~truth)
    answer = fr.compare({"y": truth * 1, "a": first * 1, "b": second * 1}, truth="y", pred=("a", "b"))
    assert {rate: one.verdict for rate, one in answer.rates.items()} == {"tnr": "worse", "tpr": "better"}
    assert answer.verdict == "worse"
    assert str(answer).startswith("b is worse than a: stop\n  tnr 0.9")


def test_the_bounds_are_where_brute_force_puts_them():
    random = np.random.default_rng(2)
    differences = random.choice([-1.0, 0.0, 1.0], 500, p=[0.1, 0.7, 0.2])

    def winnings(m, sign):
        wealth = [np.prod(1 + stake * (sign * differences - m) / (1 + m)) for stake in STAKES]
        return np.mean(wealth)

    lower, upper = _bounds(differences, LEVEL)
    assert winnings(lower - 1e-6, 1) > 1 / LEVEL > winnings(lower + 1e-6, 1)
    assert winnings(-upper - 1e-6, -1) > 1 / LEVEL > winnings(-upper + 1e-6, -1)


@pytest.mark.parametrize("share", [0.5, 0.03, 0.97])
def test_a_later_look_makes_the_same_groups_and_then_more(share):
    random = np.random.default_rng(3)
    version, right = (random.random(3_000) < share).astype(int), random.random(3_000) < 0.8
    whole = _side_by_side(version, right)
    for size in (1, 2, 17, 100, 1_500, 2_999):
        part = _side_by_side(version[:size], right[:size])
        assert part.tolist() == whole[: part.size].tolist()


def test_wrong_verdicts_over_all_looks_keep_to_alpha():
    """400 streams without a difference, looked at after every group: at most 5 % beside a sampling error of 1.1 %."""
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(400):
        version, right = (random.random(4_000) < 0.3).astype(int), random.random(4_000) < 0.8
        groups = _side_by_side(version, right)
        for sign in (1, -1):
            gains = np.cumsum(np.log1p(np.multiply.outer(sign * groups, STAKES)), axis=0)
            wrong += bool((np.logaddexp.reduce(gains, axis=1) >= np.log(STAKES.size / LEVEL)).any())
    assert wrong / 400 <= 0.05 + 2 * 0.011


def test_rows_that_one_model_has_no_prediction_for_are_left_out():
    frame = shadow(2_000)
    v2 = [None if i % 3 == 0 else int(value) for i, value in enumerate(frame["v2"])]
    kept = {name: [int(value) for i, value in enumerate(column) if i % 3] for name, column in frame.items()}
    given = fr.compare({**frame, "v2": v2}, truth="y", pred=("v1", "v2"), bad="skip")
    assert given == fr.compare(kept, truth="y", pred=("v1", "v2"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pred": "v1"}, "give two columns of predictions"),
        ({"pred": ("v1", "v2"), "by": "y"}, "give two columns of predictions"),
        ({"pred": ("v1", "v2", "y")}, "give two columns of predictions"),
        ({"pred": ("v1", "v2"), "alpha": 0}, "alpha must be between 0 and 1, not 0"),
        ({"pred": ("v1", "v2"), "margin": 3}, "margin must be from 0 to 1, in recall, not 3"),
        ({"pred": ("v1", "nowhere")}, "nowhere"),
        ({"pred": "v1", "by": "shop"}, r"two models can be compared, not 3 \(a, b, c\)"),
        ({"pred": "v1", "by": "shop", "models": ("a", "z")}, "no row is of model 'z'; there are a, b, c"),
    ],
)
def test_what_cannot_be_compared_is_said(given, message):
    frame = {**shadow(9), "shop": ["a", "b", "c"] * 3}
    with pytest.raises(ValueError, match=message):
        fr.compare(frame, truth="y", **given)
