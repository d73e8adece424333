"""Frames and files in, findings out."""

import json
import re

import numpy as np
import pytest
from placing import bare

import fourrates as fr
from fourrates import io
from fourrates.streams import SCENARIOS, fraud

KINDS = ["drift", "confirmation", "drift", "confirmation", "recovery", "recovery"]  # tpr falls, and then tnr rises
WORDS = np.array(["ham", "spam"])


@pytest.fixture(scope="module")
def data():
    stream = fraud(seed=5)
    return {"label": stream.y_true, "prediction": stream.y_pred, "time": stream.times}


@pytest.fixture(scope="module")
def found(data):
    return fr.detect(data)


def small(size=20_000, seed=0):
    """The true positive rate falls from 0.9 to 0.4 half way."""
    random = np.random.default_rng(seed)
    truth = (random.random(size) < 0.4).astype(int)
    wrong = np.where((np.arange(size) >= size // 2) & (truth == 1), 0.6, 0.1)
    return truth, truth ^ (random.random(size) < wrong)


def test_it_finds_what_the_detector_finds(data, found):
    detector = fr.FourRates(found.watch.detector.parameters["arl"])
    detector.update_many(data["label"], data["prediction"])
    assert [*map(bare, found)] == list(detector.findings)
    assert [one.kind for one in found] == KINDS
    assert found.drifts == [found[0], found[2]]
    assert [one for one in found if one.kind == "recovery"] == [found[4], found[5]]
    assert found.events == 200_000


def test_the_summary_says_what_was_found_and_what_was_guessed(found):
    lines = found.summary().splitlines()
    assert lines[0].startswith("Stable: tnr 0.9")
    assert lines[1] == "2 drifts and 2 recoveries in 200,000 events, 2026-01-01 00:00 to 2026-01-11 00:00"
    assert "drift at" in lines[2]
    assert "tpr down" in lines[2]
    assert any("recovery at" in line and "tpr up" in line for line in lines)
    assert not any("to train on" in line for line in lines)  # what drifted is back
    assert "labels in column 'label', predictions in column 'prediction', times in column 'time'" in lines
    assert "budget: one false alarm a month, which is 608,802 events at 20,000 a day" in lines


def test_the_default_budget_is_said(data):
    yearly = fr.detect(data, budget="1 per year").messages
    assert "20,000 events a day, so '1 per year' is one false alarm in 7,305,023 events" in yearly
    truth, pred = small(1000)
    found = fr.detect((truth, pred))
    assert found.watch.detector.parameters["arl"] == 100_000
    assert found.messages[-1] == "budget: one false alarm in 100,000 events"


def test_json_can_have_it_all(found):
    record = json.loads(json.dumps(found.to_dict()))
    assert record["drifted"]
    assert [one["kind"] for one in record["findings"]] == KINDS
    assert [one.get("closes") for one in record["findings"]] == [None, False, None, False, False, True]
    assert {one["drift"] for one in record["findings"][1:]} == {found[0].at}
    assert record["columns"] == {"truth": "label", "pred": "prediction", "time": "time"}
    assert record["messages"] == found.messages


def test_a_frame_has_a_row_for_each_rate_that_moved(found):
    pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert len(frame) == sum(len(one.changes) for one in found)
    assert frame["at"].tolist() == [one.at for one in found for _ in one.changes]
    assert frame["kind"].tolist() == [one.kind for one in found for _ in one.changes]
    assert "segment" not in frame
    assert fr.detect((np.zeros(10, int), np.zeros(10, int))).to_pandas().empty


def test_a_notebook_shows_names_as_text_only():
    truth, pred = small()
    name = "<script>alert(1)</script>"
    found = fr.detect({"label": truth, "prediction": pred.astype(int), "model": [name] * truth.size}, by="model")
    page = found._repr_html_()
    assert found.drifts
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_notebook_tells_what_kind_each_finding_is(found):
    page = found._repr_html_()
    assert re.findall(r"<tr><td style=.*?>(?:<span.*?</span> )?(\w+)</td>", page) == KINDS


@pytest.mark.parametrize("is_there", [True, False])
def test_a_notebook_shows_the_picture_of_plot_if_matplotlib_is_there(found, is_there, monkeypatch):
    pytest.importorskip("matplotlib")
    if not is_there:
        monkeypatch.setattr("fourrates.report.notebook.find_spec", lambda name: None)
    assert found._repr_html_().count("data:image/png;base64,") == is_there


@pytest.mark.slow
def test_a_picture_and_a_page_are_made(found, tmp_path):
    pytest.importorskip("matplotlib")
    assert [panel.get_title("left") for panel in found.plot().axes] == ["tpr", "tnr"]
    found.report(tmp_path / "page.html")
    assert "Recovered" in (tmp_path / "page.html").read_text()
    with pytest.raises(KeyError, match="no segment 'x'"):
        found.plot("x")


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "lazy", "pyarrow", "reader", "duckdb", "csv", "parquet"])
def test_every_source_gives_the_same(kind, tmp_path):
    truth, pred = small()
    columns = {"y": WORDS[truth], "pred": WORDS[pred]}
    detector = fr.FourRates(50_000, labels=["ham", "spam"])
    assert detector.update_many(columns["y"], columns["pred"])
    source = columns
    if kind in ("pandas", "csv", "parquet"):
        source = pytest.importorskip("pandas").DataFrame(columns)
    if kind in ("polars", "lazy"):
        source = pytest.importorskip("polars").DataFrame(columns)
        source = source.lazy() if kind == "lazy" else source
    if kind in ("pyarrow", "reader", "duckdb"):
        source = pytest.importorskip("pyarrow").table(columns)
        source = source.to_reader(1000) if kind == "reader" else source
    if kind == "duckdb":
        source = pytest.importorskip("duckdb").from_arrow(source).filter("y <> 'x'")
    if kind == "csv":
        source.to_csv(tmp_path / "x.csv", index=False)
        source = tmp_path / "x.csv"
    if kind == "parquet":
        source.to_parquet(tmp_path / "x.parquet")
        source = str(tmp_path / "x.parquet")
    found = fr.detect(source, truth="y", pred="pred", arl=50_000)
    assert [*map(bare, found)] == list(detector.findings)
    assert "classes from the data: ham, spam; spam is the positive one (--positive)" in found.messages


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "csv", "parquet", "feather"])
def test_times_written_as_text_are_times_in_every_source(kind, tmp_path):
    pandas = pytest.importorskip("pandas")
    truth, pred = small()
    moments = np.datetime64("2026-01-01T00:00:00") + np.arange(truth.size) * np.timedelta64(90, "s")
    columns = {"timestamp": moments.astype(str), "y_true": truth, "y_pred": pred}
    source = columns if kind == "dict" else pandas.DataFrame(columns)
    if kind == "polars":
        source = pytest.importorskip("polars").DataFrame(columns)
    if kind in ("csv", "parquet", "feather"):
        path = tmp_path / f"x.{kind}"
        options = {"csv": {"index": False}, "parquet": {}, "feather": {"compression": "uncompressed"}}
        getattr(source, f"to_{kind}")(path, **options[kind])
        source = path
    found = fr.detect(source)
    assert "times in column 'timestamp'" in found.messages[0]
    assert found.messages[-1] == "budget: one false alarm a month, which is 29,222 events at 960 a day"
    assert [one.time for one in found] == [moments[one.at] for one in found]
    assert len(found)


def test_a_class_that_comes_late_in_a_frame_is_known_from_the_start():
    size = 300_000  # more than one batch
    truth = np.arange(size) % 2 + 1
    truth[-5:] = 7
    found = fr.detect((truth, truth))
    assert found.watch.detector.labels.values == (1, 2, 7)


def test_streams_are_told_apart(data):
    model = np.array(["a", "b"])[np.arange(200_000) % 2]
    found = fr.detect({**data, "model": model}, by="model", arl=100_000)
    for name in "ab":
        own = model == name
        single = fr.FourRates(100_000)
        assert single.update_many(data["label"][own], data["prediction"][own])
        assert [bare(one) for one in found if one.segment == name] == list(single.findings)


def test_a_reference_may_be_counts_or_pairs_or_a_frame():
    truth, pred = small()
    counts = np.array([[9000, 1000], [600, 5400]])
    t, g = (np.repeat(side, counts.ravel()) for side in ([0, 0, 1, 1], [0, 1, 0, 1]))
    detector = fr.FourRates(50_000, reference=counts)
    assert detector.update_many(truth, pred)
    frame = {"y_true": truth, "y_pred": pred.astype(int)}
    for reference in (counts, counts.tolist(), (t, g), {"y_true": t, "y_pred": g}):
        found = fr.detect(frame, reference=reference, arl=50_000)
        assert [*map(bare, found)] == list(detector.findings)
        assert found.watch.detector.parameters["after"] == "hold"
    with pytest.raises(ValueError, match="LFR takes no reference"):
        fr.detect(frame, reference=counts, detector=fr.LFR)


def test_labels_that_come_later_are_joined():
    truth, pred = small()
    order = np.random.default_rng(1).permutation(truth.size)
    found = fr.detect(
        {"order": np.arange(truth.size), "prediction": pred.astype(int)},
        id="order",
        labels_from={"order": order, "label": truth[order]},
        arl=50_000,
    )
    detector = fr.FourRates(50_000)
    assert detector.update_many(truth, pred)
    assert [bare(one) for one in found if one.kind != "prediction_shift"] == list(detector.findings)


def test_other_detectors_run_too():
    truth, pred = small()
    for detector in (fr.LFR, fr.LFR(), fr.baselines.DDM):
        found = fr.detect((truth, pred.astype(int)), detector=detector)
        kind = detector if isinstance(detector, type) else type(detector)
        assert [*map(bare, found)] == list(kind().update_many(truth, pred))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"arl": 100, "budget": "1 per month"}, "give one of them"),
        ({"budget": "soon"}, "budget 'soon': try '1 per month' or 100000"),
        ({"budget": "1 per month"}, "needs a column of times"),
        ({"arl": 5}, "arl"),
        ({"detector": fr.baselines.DDM, "arl": 1000}, "DDM takes no average run length"),
        ({"detector": fr.LFR(), "arl": 1000}, "give arl to the detector"),
        ({"positive": 7}, "positive 7 is not one of"),
        ({"truth": "nowhere"}, "no column 'nowhere'"),
        ({"reference": [[1, 2, 3]]}, "reference has shape"),
    ],
)
def test_what_cannot_be_is_a_value_error(options, why):
    with pytest.raises(ValueError, match=why):
        fr.detect({"y_true": [0, 1], "y_pred": [0, 1]}, **options)


def test_nothing_to_read_is_said():
    with pytest.raises(io.InputError, match="none of 2 rows has a label"):
        fr.detect({"y_true": [None, None], "y_pred": [0, 1]})


def test_a_window_that_is_too_small_to_train_on_says_so():
    # tpr falls by half, which is found in less than 200 events; later tnr rises too
    truth, pred = (side[:5300] for side in SCENARIOS["Imbalance2"].stream(seed=1))
    found = fr.detect((truth, pred))
    drift = found[0]
    positives = int(truth[drift.window.start : drift.window.stop].sum())
    told, about = re.fullmatch(
        r"the window holds (\d+) examples, about (\d+) of them positives: too few to train on, wait for more",
        drift.too_few_examples,
    ).groups()
    assert int(told) == len(drift.window)
    assert abs(int(about) - positives) <= 3  # what the detector remembers of the time since the start is rounded
    for end, missing in ((drift.at + 1, "200 rows"), (5150, "200 rows"), (len(truth), None)):
        summary = fr.detect((truth[:end], pred[:end])).summary()
        seen = truth[drift.window.start : end]
        assert ("to retrain on" in summary) == (missing is not None)
        if missing is not None:
            said = r"to retrain on the drift: (\d+) rows since it started, (\d+) of them positives: "
            rows, positives = re.search(rf"{said}too few, wait for {missing}\n", summary).groups()
            assert abs(int(rows) - len(seen)) <= 8  # to the nearest bin, as in the report
            assert abs(int(positives) - int(seen.sum())) <= 8


def test_what_has_come_since_a_drift_is_counted_in_its_own_stream():
    truth, pred = (side[:5300] for side in SCENARIOS["Imbalance2"].stream(seed=1))
    frame = {
        "truth": np.tile(truth, 2),
        "pred": np.concatenate([pred, truth]),
        "model": np.repeat(["a", "b"], len(truth)),
    }
    found = fr.detect(frame, by="model")
    assert found[0].segment == "a"
    assert "to retrain on" not in found.summary()  # as there are enough by the end
    short = fr.detect(
        {name: column[np.arange(len(column)) % len(truth) < 5150] for name, column in frame.items()}, by="model"
    )
    (rows,) = re.search(r"to retrain on the drift in a: (\d+) rows since it started, ", short.summary()).groups()
    assert abs(int(rows) - (5150 - short[0].window.start)) <= 8


def test_what_to_train_on_follows_the_drift_that_is_named_and_not_a_later_alarm():
    """tnr falls at event 10,000, and tpr rises by much less at 20,000; the report has the same numbers."""
    random, at = np.random.default_rng(2), np.arange(20_400)
    truth = (random.random(at.size) < 0.5).astype(int)
    wrong = np.where(truth == 1, np.where(at < 20_000, 0.4, 0.1), np.where(at < 10_000, 0.1, 0.3))
    found = fr.detect((truth, truth ^ (random.random(at.size) < wrong)))
    first, *_, last = (one for one in found if one.kind == "drift")
    assert (first.changes[0].rate, last.changes[0].rate) == ("tnr", "tpr")
    assert last.too_few_examples is not None
    (opened,) = found.watch.now().open
    assert opened.leading.at == first.at
    assert "to retrain on" not in found.summary()


def test_a_window_that_is_large_enough_says_nothing():
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 60_000)
    share = np.where(np.arange(60_000) < 30_000, 0.9, 0.86)
    found = fr.detect((truth, np.where(random.random(60_000) < share, truth, 1 - truth)))
    assert len(found[0].window) > 200
    assert found[0].too_few_examples is None
    assert "to train on" not in found.summary()


def test_several_columns_make_a_segment_of_each_combination_of_their_values():
    random = np.random.default_rng(0)
    truth = (random.random(40_000) < 0.3).astype(int)
    country, device = np.array(["de", "fr"])[random.integers(0, 2, 40_000)], random.integers(0, 2, 40_000)
    fallen = (country == "fr") & (device == 1) & (truth == 1) & (np.arange(40_000) > 20_000)
    frame = {"y_true": truth, "y_pred": np.where(random.random(40_000) < np.where(fallen, 0.5, 0.9), truth, 1 - truth)}
    frame |= {"country": country, "device": device}
    found = fr.detect(frame, by=["country", "device"], reference=frame, arl=200_000)
    assert {*found.watch.segments} == {*found.watch.references} == {"de, 0", "de, 1", "fr, 0", "fr, 1"}
    assert [drift.segment for drift in fr.detect(frame, by=["country", "device"], arl=200_000).drifts] == ["fr, 1"]
    with pytest.raises(TypeError, match="each once"):
        fr.detect(frame, by=["country", "country"])


def test_segments_of_several_columns_are_not_mixed_up_by_commas():
    columns = {"y_true": [1, 0] * 2, "y_pred": [1, 0] * 2, "a": ["x, y", "x", "x", "x"], "b": ["z", "y, z", "y", "z"]}
    watch = fr.detect(columns, by=["a", "b"], arl=1000).watch
    assert len(watch.segments) == 4


@pytest.mark.parametrize(
    ("truth", "pred"),
    [
        *(("is_fraud", "score"), ("churned", "prediction"), ("queue", "predicted_queue"), ("kind", "kind_pred")),
        *(("is_fraud", "predicted_fraud"), ("churned", "Prediction (churn)")),
    ],
)
def test_names_that_people_use_are_guessed(truth, pred):
    values = [0, 1, 1, 0] * 100
    found = fr.detect({truth: values, pred: values, "other": values}, arl=1000)
    assert (found.source.columns.truth, found.source.columns.pred or found.source.columns.score) == (truth, pred)


def test_names_in_two_files_are_guessed_together():
    predictions = {"id": [1, 2, 3], "predicted_queue": ["a", "b", "a"], "predicted_queue_score": [0.5] * 3}
    events = io.joined(predictions, {"id": [1, 2, 3], "queue": ["a", "b", "b"], "note": ["x"] * 3}, labels=None)
    assert sum(batch.truths.size for batch in events) == 3


@pytest.mark.parametrize("late", [False, True])
def test_the_examples_of_a_drift_are_rows_of_its_segment_since_it_started(late):
    random = np.random.default_rng(4)
    truth = (random.random(20_000) < 0.3).astype(int)
    model = np.array(["a", "b"])[random.integers(0, 2, 20_000)]
    fallen = (model == "b") & (truth == 1) & (np.arange(20_000) >= 12_000)
    pred = np.where(random.random(20_000) < np.where(fallen, 0.4, 0.9), truth, 1 - truth)
    frame = {"y_pred": pred, "model": model, "id": np.arange(20_000)}
    labels = {"id": np.arange(20_000)[::-1], "y_true": truth[::-1]}
    given = {"source": frame, "labels_from": labels, "id": "id"} if late else {"source": frame | {"y_true": truth}}
    found = fr.detect(by="model", arl=100_000, **given)
    rows = found.examples()["frame"]
    [drift] = [drift for drift in found.drifts if drift.segment == "b"]
    assert (model[rows - 1] == "b").all()
    assert abs(rows[0] - 12_000) < 200
    assert rows.size == found.watch.segments["b"].events - drift.started


def test_bad_rows_can_be_skipped():
    data = {"label": [0, 1, "x"] * 50, "prediction": [0, 1, 1] * 50}
    with pytest.raises(ValueError, match="'x' in column 'label'"):
        fr.detect(data, labels=[0, 1])
    found = fr.detect(data, labels=[0, 1], bad="skip")
    assert (found.events, "50 of 150 rows skipped: 50 are bad" in found.messages) == (100, True)
