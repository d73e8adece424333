"""Events drawn for labelling: their probabilities arrive with the prediction or with the label, at every door alike."""

import json

import numpy as np
import pytest

import fourrates as fr
from fourrates.io import InputError

ARL = 10_000


@pytest.fixture(scope="module")
def story():
    """Predictions, a draw of a fifth of them, and what FourRates finds in the labelled ones."""
    random = np.random.default_rng(1)
    size = 60_000
    y_true = (random.random(size) < 0.1).astype(int)
    wrong = random.random(size) < np.where(y_true, 0.3, np.where(np.arange(size) > 40_000, 0.06, 0.02))
    y_pred, ids = y_true ^ wrong, np.arange(size)
    draw = fr.LabelPlan([[8820, 180], [300, 700]], share=0.2).draw(ids, y_pred)
    times = np.datetime64("2026-01-01", "us") + ids * np.timedelta64(10, "s")
    own, other = draw.probability[ids, y_pred], draw.probability[ids, 1 - y_pred]
    drawn = {"label_probability": own, "other_probability": other}
    detector = fr.FourRates(arl=ARL, sampled=True)
    detector.update_many(y_true[draw.drawn], y_pred[draw.drawn], probability=draw.probability[draw.drawn])
    assert {finding.kind for finding in detector.findings} >= {"drift", "confirmation"}
    wanted = [*map(str, detector.findings)]
    return draw, {"id": ids, "prediction": y_pred, "time": times}, y_true, drawn, wanted


def labelled(columns, drawn):
    return {name: column[drawn] for name, column in columns.items()}


@pytest.mark.parametrize("order", ["prediction", "arrival"])
@pytest.mark.parametrize("side", ["predictions", "labels", "both"])
def test_probabilities_come_with_the_prediction_or_the_label(story, side, order):
    draw, predictions, y_true, drawn, wanted = story
    labels = labelled({"id": predictions["id"], "label": y_true}, draw.drawn)
    if side != "labels":
        predictions = predictions | drawn
    if side != "predictions":
        labels |= labelled(drawn, draw.drawn)
    found = fr.detect(predictions, labels_from=labels, arl=ARL, order=order)
    assert [str(one) for one in found if one.kind != "prediction_shift"] == wanted
    alone = fr.detect(labelled({**predictions, "label": y_true, **drawn}, draw.drawn), arl=ARL)
    assert [*map(str, alone)] == wanted
    assert alone.now().rates == found.now().rates
    if order == "prediction":
        started = [finding.started_time for finding in found if finding.kind != "prediction_shift"]
        assert [finding.started_time for finding in alone] == started


@pytest.mark.parametrize("side", ["predict", "label", "both"])
@pytest.mark.parametrize("labels", [[0, 1], [1, 0]])
def test_a_join_keeps_probabilities_by_id_and_over_a_saving(story, side, labels):
    draw, predictions, y_true, _, wanted = story
    order = [[0, 1].index(label) for label in labels]
    given = {name: draw.probability[:, order] if name == side else None for name in ("predict", "label", "both")}
    join, some = fr.LabelJoin(labels, 1), draw.drawn
    if side == "both":
        pairs = join.both(
            predictions["id"][some], y_true[some], predictions["prediction"][some], probability=given["both"][some]
        )
    else:
        join.predict(predictions["id"], predictions["prediction"], probability=given["predict"])
        join = fr.LabelJoin.from_bytes(join.to_bytes())
        of_labels = None if given["label"] is None else given["label"][some]
        pairs = join.label(predictions["id"][some], y_true[some], probability=of_labels)
    detector = fr.FourRates(arl=ARL, labels=labels, positive=1, sampled=True)
    detector.update_many(pairs.y_true, pairs.y_pred, probability=pairs.probability)
    assert [*map(str, detector.findings)] == wanted


def test_a_label_without_a_probability_among_others_is_named(story):
    draw, predictions, y_true, drawn, _ = story
    labels = labelled({"id": predictions["id"], "label": y_true, **drawn}, draw.drawn)
    lines = [json.dumps(dict(zip(labels, map(float, row), strict=True))) for row in zip(*labels.values(), strict=True)]
    del labels["other_probability"]
    with pytest.raises(InputError, match="label_probability and other_probability"):
        fr.Watch(fr.FourRates(sampled=True)).update(labelled({**predictions, "label": y_true}, draw.drawn))
    row = json.loads(lines[4]) | {"other_probability": None}
    with pytest.raises(InputError, match="row 5: the value in column 'other_probability' is missing"):
        fr.detect(predictions, labels_from=_frame([*map(json.loads, lines[:4]), row]), arl=ARL)


def _frame(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_pairs_without_probabilities_have_none():
    join = fr.LabelJoin()
    join.predict([1, 2], [0, 1], probability=None)
    assert not join.label([1, 2], [0, 1]).probability.any()
    with pytest.raises(ValueError, match="not above 0"):
        join.predict([3], [0], probability=[[0.0, 1.0]])
    with pytest.raises(ValueError, match="two labels"):
        fr.LabelJoin(["a", "b", "c"]).predict([3], ["a"], probability=[[0.5, 0.5]])


@pytest.mark.parametrize("how", ["pairs", "pairs with ids", "predictions"])
def test_a_sampled_monitor_of_the_service_finds_the_same_across_a_snapshot(story, how, tmp_path):
    pytest.importorskip("starlette")
    from fourrates.serve.batch import KINDS, Entry, decode, encode
    from fourrates.serve.bodies import Body, Limits, Plan, make_batch
    from fourrates.serve.config import MonitorConfig
    from fourrates.serve.monitor import Monitor
    from fourrates.serve.settings import Settings

    draw, predictions, y_true, drawn, wanted = story
    config, key, settings = MonitorConfig(arl=ARL, sampled=True), bytes(16), Settings(data=tmp_path)
    monitor, found, some = Monitor(config, key, settings), [], np.flatnonzero(draw.drawn)
    for rows in np.array_split(np.arange(y_true.size) if how == "predictions" else some, 5):
        own = {name: column[rows] for name, column in drawn.items()}
        body = Body(y_pred=None, pred=predictions["prediction"][rows], **own)
        bodies = [("predictions" if how == "predictions" else "events", body)]
        if how != "pairs":
            body.id = predictions["id"][rows]
        if how == "predictions":
            known = rows[draw.drawn[rows]]
            bodies.append(("labels", Body(truth=y_true[known], id=predictions["id"][known])))
        else:
            body.truth = y_true[rows]
        for kind, sent in bodies:
            batch, rejected = make_batch(KINDS[kind], sent, Plan(config), 1.8e9, limits=Limits(10**6, 10**9))
            assert not rejected
            (entry,) = decode(encode([Entry(0, batch)]))
            found += monitor.apply(entry.batch).findings
        monitor = Monitor.restore(monitor.snapshot(), key, settings)
    assert [str(one) for one in found if one.kind != "prediction_shift"] == wanted
    right, total = monitor.confusion.diagonal().sum(), monitor.confusion.sum()
    assert abs(total - y_true.size) / y_true.size < 0.03, "a labelled event counts for all it represents"
    assert right / total == pytest.approx((y_true == predictions["prediction"]).mean(), abs=0.01)
