"""Whether errors are labelled sooner than right predictions."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.io import Columns, joined
from fourrates.join import delays

DAYS = 60.0


def stream(random, sooner=1.0, which="errors", like=""):
    """Predictions of 60 days, their labels after 10 days in the mean, of some `sooner` times as soon."""
    times = np.sort(random.random(6_000)) * DAYS
    truths = random.random(6_000) < 0.2
    wrong = random.random(6_000) < np.where(truths, 0.3, 0.1)
    waits = random.exponential(10, 6_000)
    if like == "a drift while all labels slow down":
        late = times > DAYS / 2
        wrong |= late & (random.random(6_000) < 0.2)
        waits[late] *= 3
    if like == "every event thrice, labels once a week":
        truths, wrong, waits = (column[np.arange(6_000) // 3 * 3] for column in (truths, wrong, waits))
        waits = np.ceil((times + waits) / 7) * 7 - times
    waits[wrong == (which == "errors")] /= sooner
    here = np.flatnonzero(times + waits < DAYS)
    here = here[np.argsort((times + waits)[here])]
    return times, truths.astype(int), (truths ^ wrong).astype(int), waits, here


def join_of(random, **more):
    times, truths, preds, waits, here = stream(random, **more)
    join = fr.LabelJoin(seed=int(random.integers(2**60)))
    join.predict(np.arange(times.size), preds, times)
    join.label(here, truths[here], (times + waits)[here])
    return join


@pytest.mark.parametrize(
    "like", ["", "a drift while all labels slow down", "every event thrice, labels once a week"], ids=str
)
def test_equal_delays_are_seldom_called_different(like, monkeypatch):
    monkeypatch.setattr(delays, "LEVEL", 0.05)  # the real one would need a million looks
    monkeypatch.setattr(delays, "SMALLEST", 0.0)
    random = np.random.default_rng(31)
    named = sum(join_of(random, like=like).delay_warning is not None for _ in range(200))
    assert named <= 20  # 5 % of 200, and three standard errors


def test_errors_labelled_five_times_sooner_are_named_and_right_predictions_too():
    random = np.random.default_rng(32)
    for which, told in (("errors", "tpr looks worse than it is"), ("right", "tpr looks better than it is")):
        warnings = [join_of(random, sooner=5, which=which).delay_warning or "" for _ in range(40)]
        assert sum(told in warning for warning in warnings) >= 38


def test_a_warning_gives_halves_and_the_time_until_a_rate_is_complete():
    random = np.random.default_rng(33)
    join = fr.LabelJoin(["fine", "fraud"], seed=1)
    ids = np.arange(8_000)
    truths = np.where(random.random(8_000) < 0.5, "fraud", "fine")
    wrong = random.random(8_000) < 0.25
    preds = np.where((truths == "fraud") ^ wrong, "fraud", "fine")
    join.predict(ids, preds, np.arange(8_000) * 1.0)
    sooner = np.where(wrong & (truths == "fraud"), 10.0, 1_000.0)
    for part in np.array_split(ids, 3):
        join.label(part, truths[part], (part + sooner[part] + random.random(part.size)).round(1))
    assert join.delay_warning == (
        "errors on fraud are labelled sooner than right predictions (half of them within 10.5, the others 1000): "
        "for the first 1001, tpr looks worse than it is"
    )
    assert fr.LabelJoin.from_bytes(join.to_bytes()).delay_warning == join.delay_warning


def test_a_sample_is_bounded_and_does_not_depend_on_how_pairs_were_cut():
    random = np.random.default_rng(34)
    draws = random.integers(0, 2**64, 60_000, dtype=np.uint64)
    truths, preds = random.integers(0, 3, (2, 60_000)).astype(np.uint16)
    since, waits = random.random((2, 60_000))
    one, many = delays.LabelDelays(3), delays.LabelDelays(3)
    one.add(draws, truths, preds, since, waits)
    for part in np.array_split(np.arange(60_000), 700):
        many.add(draws[part], truths[part], preds[part], since[part], waits[part])
    assert one.to_bytes() == many.to_bytes()
    assert len(one.to_bytes()) <= delays.MOST * delays.SAMPLED.itemsize
    with pytest.raises(ValueError, match="sample of delays"):
        delays.LabelDelays(2).load(one.to_bytes())


@pytest.mark.parametrize("order", ["prediction", "arrival"])
def test_two_files_are_read_with_the_warning_in_either_order(order):
    times, truths, preds, waits, here = stream(np.random.default_rng(35), sooner=5)
    start = np.datetime64("2026-01-01", "us")
    predicted, labelled = (start + (days * 86_400e6).astype("m8[us]") for days in (times, times + waits))
    events = joined(
        {"id": np.arange(times.size), "pred": preds, "time": predicted},
        {"id": here, "label": truths[here], "time": labelled[here]},
        columns=Columns(id="id"),
        order=order,
    )
    assert sum(batch.truths.size for batch in events) == here.size
    told = events.data_warnings()["delays"]
    assert told.startswith("errors on 0 are labelled sooner than right predictions (half of them within ")
    assert told.endswith(" days, tpr looks worse than it is")
