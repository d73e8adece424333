"""Which events to label: probabilities, draws, and what they are good for."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.io import InputError

REFERENCE = [[8820, 180], [300, 700]]  # tnr .98, tpr .7, a tenth positives


def labelled_share(plan, reference):
    counts = np.array(reference)
    return (counts.sum(0) * [plan.probabilities[0], plan.probabilities[1]]).sum() / counts.sum()


@pytest.mark.parametrize("share", [0.005, 0.05, 0.2, 0.7, 1.0])
def test_a_plan_labels_the_share_asked_for_and_finds_no_guarded_fall_later(share):
    plan = fr.LabelPlan(REFERENCE, share=share)
    assert labelled_share(plan, REFERENCE) == pytest.approx(share)
    assert 0 < min(plan.probabilities.values()) <= max(plan.probabilities.values()) <= 1
    assert all(delay.events <= 1.05 * delay.evenly for delay in plan.delays)
    tnr, _, together = plan.delays
    if share <= 0.2:
        assert tnr.evenly / tnr.events > 2.5
        assert together.evenly / together.events > 2


def test_a_number_a_day_is_a_share_of_the_events_of_a_day():
    plan = fr.LabelPlan(REFERENCE, per_day=200, events_per_day=4_000)
    assert plan.probabilities == fr.LabelPlan(REFERENCE, share=0.05).probabilities
    assert fr.LabelPlan(REFERENCE, per_day=200, events_per_day=100).share == 1.0


def test_what_is_guarded_alone_is_found_sooner():
    both, tnr = fr.LabelPlan(REFERENCE, share=0.05), fr.LabelPlan(REFERENCE, share=0.05, guard={"tnr": 0.02})
    assert [(delay.fall, round(delay.after, 3)) for delay in tnr.delays] == [("tnr", 0.96)]
    assert tnr.probabilities[1] > both.probabilities[1]


def test_segments_get_as_many_labels_each_as_far_as_they_have_events():
    segments = {"large": 10 * np.array(REFERENCE), "small": REFERENCE, "tiny": np.array(REFERENCE) // 10}
    plan = fr.LabelPlan(segments, share=0.2)
    labelled = {
        name: (np.array(one).sum(0) * [*plan.probabilities[name].values()]).sum() for name, one in segments.items()
    }
    assert sum(labelled.values()) == pytest.approx(0.2 * 111_000)
    assert labelled["tiny"] == pytest.approx(1_000)
    assert labelled["small"] == pytest.approx(10_000)
    draw = plan.draw([1, 2, 3], [0, 1, 1], ["tiny", "large", "small"])
    assert draw.drawn[0]
    with pytest.raises(ValueError, match="segment 'huge' is not in the plan"):
        plan.draw([1], [0], ["huge"])
    with pytest.raises(ValueError, match="this plan is by segment"):
        plan.draw([1], [0])


def test_an_id_is_drawn_the_same_however_often_and_wherever_it_is_asked_for():
    plan, ids = fr.LabelPlan(REFERENCE, share=0.05, key="secret"), [f"order-{i}" for i in range(50_000)]
    preds = np.arange(50_000) % 2
    draw = plan.draw(ids, preds)
    again = fr.LabelPlan(REFERENCE, share=0.05, key="secret").draw(ids[::-1], preds[::-1])
    assert (draw.drawn == again.drawn[::-1]).all()
    assert draw.drawn[17] == plan.draw([ids[17]], [1]).drawn[0]
    for label, probability in plan.probabilities.items():  # four deviations of a binomial
        found = draw.drawn[preds == label]
        assert abs(found.mean() - probability) < 4 * np.sqrt(probability * (1 - probability) / found.size)
    other = fr.LabelPlan(REFERENCE, share=0.05, key="another").draw(ids, preds).drawn
    assert abs((draw.drawn & other).mean() - np.mean([p**2 for p in plan.probabilities.values()])) < 0.01


def test_what_a_plan_draws_is_what_the_detector_takes_also_with_other_labels():
    random = np.random.default_rng(1)
    reference = [[700, 300], [180, 8820]]  # the positive class first
    plan = fr.LabelPlan(reference, share=0.1, labels=["bad", "good"], positive="bad")
    assert plan.probabilities["bad"] > 2 * plan.probabilities["good"]
    truth = np.where(random.random(60_000) < 0.1, "bad", "good")
    wrong = random.random(60_000) < np.where(truth == "bad", 0.3, 0.02)
    pred = np.where(wrong, np.where(truth == "bad", "good", "bad"), truth)
    draw = plan.draw(np.arange(60_000), pred)
    detector = fr.FourRates(labels=["bad", "good"], positive="bad", reference=reference, sampled=True)
    assert not detector.update_many(truth[draw.drawn], pred[draw.drawn], probability=draw.probability[draw.drawn])
    assert detector.rates["tnr"].now.lower < 0.98 < detector.rates["tnr"].now.upper
    assert detector.rates["tpr"].now.lower < 0.7 < detector.rates["tpr"].now.upper


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give share or per_day"),
        ({"share": 0.1, "per_day": 3}, "give share or per_day"),
        ({"share": 0}, "share 0 is not"),
        ({"per_day": 200}, "needs events_per_day"),
        ({"share": 0.1, "guard": {"ppv": 0.1}}, "'ppv' is not a recall"),
        ({"share": 0.1, "guard": {"tpr": 0.8}}, "tpr is 0.700 and cannot fall by 0.8"),
        ({"share": 0.1, "labels": [1, 2, 3]}, "a plan is for two"),
    ],
)
def test_plans_that_cannot_be_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        fr.LabelPlan(REFERENCE, **given)


def test_labels_that_do_not_come_as_they_were_drawn_are_named_by_check_and_detect():
    random, plan = np.random.default_rng(3), fr.LabelPlan(REFERENCE, share=0.05)
    truth = (random.random(100_000) < 0.1).astype(int)
    pred = np.where(random.random(100_000) < np.where(truth, 0.7, 0.98), truth, 1 - truth)
    pair = np.array([plan.probabilities[0], plan.probabilities[1]])
    frame = {"y_pred": pred, "label_probability": pair[pred], "other_probability": pair[1 - pred]}
    said = "labels are not those that were drawn"
    for chances, wrong in ((pair[pred], False), (pair[truth], True)):
        labels = [
            one if there else None
            for one, there in zip(truth.tolist(), random.random(truth.size) < chances, strict=True)
        ]
        assert fr.diagnose(frame | {"y_true": labels}).problems[0].startswith(said) == wrong
        assert any(sentence.startswith(said) for sentence in fr.detect(frame | {"y_true": labels}).messages) == wrong
    labels[labels.index(1)] = None
    drawn = np.array([one is not None for one in labels])
    kept = {name: column[drawn] for name, column in frame.items()}  # of drawn rows alone nothing can be said
    assert not any(
        said in one for one in fr.detect(kept | {"y_true": [one for one in labels if one is not None]}).messages
    )


def test_a_frame_with_the_probabilities_is_watched_as_one_of_all_events(tmp_path):
    random, plan = np.random.default_rng(2), fr.LabelPlan(REFERENCE, share=0.05)
    truth = (random.random(400_000) < 0.1).astype(int)
    tnr = np.where(np.arange(400_000) < 200_000, 0.98, 0.95)
    pred = np.where(random.random(400_000) < np.where(truth, 0.7, tnr), truth, 1 - truth)
    drawn, probability = plan.draw(np.arange(400_000), pred)
    frame = {"y_true": truth[drawn], "y_pred": pred[drawn]}
    own, other = (probability[drawn, side] for side in (frame["y_pred"], 1 - frame["y_pred"]))
    found = fr.detect(
        frame | {"label_probability": own, "other_probability": other}, cost={"false alarm": 1, "miss": 1}
    )
    assert [change.rate for change in found.drifts[0].changes] == ["tnr"]
    (opened,) = found.now().open
    assert opened.rates["tnr"].now.lower < 0.95 < opened.rates["tnr"].now.upper
    extra = 0.9 * 0.03 * (200_000 - (np.flatnonzero(drawn)[opened.drift.at] - 200_000))  # false alarms since the alarm
    assert opened.cost.lower < extra < opened.cost.upper
    again = fr.Watch.from_bytes(found.watch.to_bytes())
    again.set_cost({"false alarm": 1, "miss": 1})
    assert again.now().open == found.now().open
    with pytest.raises(InputError, match="need label_probability and other_probability"):
        found.watch.update(frame)
    with pytest.raises(ValueError, match=r"2\.0 in column 'label_probability' is not a probability"):
        fr.detect(frame | {"label_probability": np.full(own.size, 2.0), "other_probability": other})
