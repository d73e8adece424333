"""The CapyMOA adapter: inside CapyMOA's own evaluation. CapyMOA needs Java, and is tried where it is installed."""

import numpy as np
import pytest

pytest.importorskip("capymoa", reason="CapyMOA is not installed")

from capymoa.drift.base_detector import BaseDriftDetector
from capymoa.drift.detectors import ADWIN
from capymoa.drift.eval_detector import EvaluateDriftDetector

import fourrates as fr
from fourrates.adapters.capymoa import DriftDetector
from fourrates.baselines import DDM
from fourrates.streams import SCENARIOS


@pytest.mark.parametrize("kind", [fr.LFR, DDM, lambda: fr.FourRates(10_000)])
def test_it_is_one_of_capymoas_and_finds_what_its_inside_finds(kind):
    y_true, y_pred = SCENARIOS["Imbalance3"].stream(seed=1, length=6_000)
    detector = DriftDetector(kind())
    assert isinstance(detector, BaseDriftDetector)
    found = []
    for pair in zip(y_true, y_pred, strict=True):
        detector.add_element(pair)
        assert detector.detected_change() == (detector.drift is not None)
        if detector.detected_change():
            found.append(detector.drift)
    assert found == [*kind().update_many(y_true, y_pred)]
    assert detector.detection_index == [drift.at + 1 for drift in found]
    assert not {*detector.warning_index} & {*detector.detection_index}


def scored(detector, elements):
    for element in elements:
        detector.add_element(element)
    evaluate = EvaluateDriftDetector(max_delay=1_000)
    return evaluate.calc_performance(trues=np.array([5_000]), preds=detector.detection_index, tot_n_instances=10_000)


def test_capymoas_evaluation_scores_it_beside_adwin_on_a_drift_that_accuracy_hides():
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    ours = scored(DriftDetector(fr.FourRates(100_000)), zip(y_true, y_pred, strict=True))
    theirs = scored(ADWIN(), (y_true != y_pred).astype(float))
    assert (ours.f1, ours.fp, ours.mdt < 200) == (1.0, 0, True)
    assert theirs.f1 < 1.0


def test_a_reset_forgets_the_stream_and_if_asked_the_history():
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    detector = DriftDetector(fr.LFR())
    for pair in zip(y_true[:5_099], y_pred[:5_099], strict=True):
        detector.add_element(pair)
    assert detector.detected_change()
    detector.reset()
    assert (detector.detected_change(), detector.detection_index, detector._live.events) == (False, [5_099], 0)
    detector.reset(clean_history=True)
    assert (detector.detection_index, detector.idx) == ([], 0)


def test_the_error_alone_is_refused_and_the_way_out_told():
    with pytest.raises(TypeError, match=r"takes a pair \(y_true, y_pred\), not 1.0"):
        DriftDetector().add_element(1.0)
