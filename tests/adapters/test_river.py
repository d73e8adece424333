"""The river adapter: inside river's own evaluation and checks, on the data in its wheel."""

import copy
import pickle

import pytest

pytest.importorskip("river", reason="river is not installed")

from river import base, checks, datasets, evaluate, forest, metrics, naive_bayes

import fourrates as fr
from fourrates.adapters.river import DriftDetector, DriftRetrainingClassifier
from fourrates.baselines import DDM, DDMOCI, EDDM, NFR, PerfSim, ThreeMeasures
from fourrates.streams import SCENARIOS


def turned():
    """Web sites, and the same again with what was phishing turned into what was not; the change is at 1,250."""
    return [*datasets.Phishing(), *((x, not y) for x, y in datasets.Phishing())]


@pytest.mark.parametrize(
    "kind",
    [
        fr.LFR,
        NFR,
        DDM,
        EDDM,
        DDMOCI,
        PerfSim,
        ThreeMeasures,
    ],
)
def test_the_detector_is_one_of_rivers_and_finds_what_its_inside_finds(kind):
    y_true, y_pred = SCENARIOS["Imbalance3"].stream(seed=1, length=6_000)
    detector = DriftDetector(kind())
    assert isinstance(detector, base.DriftAndWarningDetector)
    found = []
    for pair in zip(y_true, y_pred, strict=True):
        detector.update(pair)
        assert detector.drift_detected == (detector.drift is not None)
        if detector.drift_detected:
            found.append(detector.drift)
    assert found == kind().update_many(y_true, y_pred)


def test_a_clone_has_seen_nothing_and_a_copy_goes_on():
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    detector = DriftDetector(fr.LFR())
    for pair in zip(y_true[:5_090], y_pred[:5_090], strict=True):
        detector.update(pair)
    assert detector.clone().rates["tpr"].n == 0
    twins = [copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))]
    for pair in zip(y_true[5_090:5_099], y_pred[5_090:5_099], strict=True):
        for twin in twins:
            twin.update(pair)
    assert [twin.drift.at for twin in twins] == [5_098, 5_098]


def test_without_a_prediction_there_is_nothing_to_watch():
    detector = DriftDetector()
    detector.update((True, None))
    assert not detector.drift_detected
    assert detector.rates["tpr"].n == 0


def test_the_error_alone_is_refused_and_the_way_out_told():
    with pytest.raises(TypeError, match=r"takes a pair \(y_true, y_pred\), not 1: .*DriftRetrainingClassifier"):
        DriftDetector().update(1)


@pytest.mark.slow
def test_the_classifier_passes_rivers_own_checks():
    (parameters,) = DriftRetrainingClassifier._unit_test_params()
    model = DriftRetrainingClassifier(**parameters)
    for check in checks.yield_checks(model):
        if check.__name__ not in model._unit_test_skips():
            check(model.clone())


@pytest.mark.slow
@pytest.mark.parametrize(("data", "accuracy"), [(datasets.Bananas, 0.61), (datasets.Phishing, 0.88)])
def test_it_runs_in_rivers_evaluation_on_rivers_data(data, accuracy):
    model = DriftRetrainingClassifier(naive_bayes.GaussianNB())
    score = evaluate.progressive_val_score(data(), model, metrics.Accuracy()).get()
    assert score > accuracy  # as GaussianNB alone: nothing drifts there
    assert not model.drifts


@pytest.mark.slow
@pytest.mark.parametrize("in_background", [True, False])
def test_a_concept_that_turns_is_learnt_anew(in_background):
    model = DriftRetrainingClassifier(naive_bayes.GaussianNB(), train_in_background=in_background)
    score = evaluate.progressive_val_score(turned(), model, metrics.Accuracy()).get()
    assert score > 0.85  # without a drift detector 0.499
    assert 1_250 <= model.drifts[0].at < 1_270
    assert all(change.direction == "down" for drift in model.drifts for change in drift.changes)


class Rising:
    """Stands for LFR: says what it is told to."""

    parameters = fr.LFR().parameters

    def __init__(self, story):
        self.story = iter(story)
        self.drift_detected = self.warning_detected = False

    def clone(self):
        return self

    def update(self, y_true, y_pred):
        word = next(self.story)
        self.drift_detected, self.warning_detected = word == "drift", word == "warning"
        return fr.Drift(at=0, since=0, confusion=()) if self.drift_detected else None


class Remembers(base.Classifier):
    """A model that is the list of what it has learnt."""

    def __init__(self):
        self.seen = []

    def learn_one(self, x, y):
        self.seen.append(x["i"])

    def predict_one(self, x):
        return True


def test_the_successor_has_learnt_from_the_last_warning_alone():
    story = ["", "warning", "warning", "", "warning", "warning", "drift", ""]
    model = DriftRetrainingClassifier(Remembers(), DriftDetector(Rising(story)))
    for i in range(len(story)):
        model.learn_one({"i": i}, True)
    assert model.model.seen == [4, 5, 6, 7]


@pytest.mark.slow
def test_more_than_two_classes_by_their_names():
    stream = [*datasets.ImageSegments().take(700)]
    labels = sorted({y for _, y in stream})
    model = DriftRetrainingClassifier(naive_bayes.GaussianNB(), DriftDetector(fr.LFR(labels=labels, sides="down")))
    assert model._multiclass
    evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    assert set(model.drift_detector.rates) == {f"{kind}:{y}" for kind in ("recall", "precision") for y in labels}


@pytest.mark.slow
def test_a_forest_of_rivers_takes_it_for_each_of_its_trees():
    class FourRatesForest(forest.ARFClassifier):
        def _drift_detector_input(self, tree_id, y_true, y_pred):
            return y_true, y_pred

    model = FourRatesForest(n_models=2, seed=1, drift_detector=DriftDetector(), warning_detector=DriftDetector())
    evaluate.progressive_val_score(turned(), model, metrics.Accuracy())
    assert model.n_drifts_detected() >= 2


def test_a_model_that_takes_over_begins_with_a_normal_of_its_own():
    """FourRates would hold what was normal for the model before it, and call what comes a drift that is open."""
    watched = DriftDetector(fr.FourRates(10_000, labels=[False, True], sides="down"))  # it learns: rises are none
    model = DriftRetrainingClassifier(naive_bayes.GaussianNB(), watched)
    evaluate.progressive_val_score(turned(), model, metrics.Accuracy())
    assert 1_250 <= model.drifts[0].at < 1_270
    assert model.drifts[0].normal_known
    assert model.drift_detector._live.open is None
