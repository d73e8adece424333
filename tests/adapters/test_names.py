"""The names of menelaus and frouros, told from the flags of a detector."""

import pytest

import fourrates as fr
from fourrates.adapters.frouros import ConceptDrift
from fourrates.adapters.menelaus import StreamingDetector
from fourrates.streams import SCENARIOS


@pytest.fixture(scope="module")
def stream():
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    return list(zip(y_true.tolist(), y_pred.tolist(), strict=True))


def test_menelaus_tells_state_and_window_as_they_were(stream):
    plain, named = fr.LFR(), StreamingDetector(fr.LFR())
    lapsed, warned = 0, False
    for pair in stream:
        drift = plain.update(*pair)
        named.update(*pair)
        if drift:
            assert named.drift_state == "drift"
            assert named.retraining_recs == [drift.since, drift.at] == [5_051, 5_098]
            assert named.samples_since_reset == 5_099
        elif plain.warning_detected:
            assert named.drift_state == "warning"
            assert named.retraining_recs[1] is None
        else:
            assert named.drift_state is None
            assert named.retraining_recs == [None, None]
            lapsed += warned
        warned = plain.warning_detected
    assert lapsed > 10
    assert named.total_samples == 10_000
    assert named.samples_since_reset == 10_000 - 5_099


def test_menelaus_reset_goes_on_counting(stream):
    named = StreamingDetector()
    for pair in stream[:100]:
        named.update(*pair)
    named.reset()
    assert (named.total_samples, named.samples_since_reset, named.drift_state) == (100, 0, None)
    for pair in stream[100:5_200]:
        named.update(*pair, X=[1.0, 2.0])
        if named.drift_state == "drift":
            assert stream[named.retraining_recs[1]] == pair
            assert named.retraining_recs[1] == named.total_samples - 1 > 5_000
            break
    else:
        pytest.fail("no drift")


def test_frouros_tells_drift_warning_and_status(stream):
    plain, named = fr.LFR(), ConceptDrift(fr.LFR())
    for pair in stream:
        plain.update(*pair)
        assert named.update(*pair) == {}
        assert named.status == {"drift": plain.drift_detected, "warning": plain.warning_detected}
    assert named.num_instances == 10_000
    named.reset()
    assert (named.num_instances, named.drift, named.warning) == (0, False, False)


@pytest.mark.parametrize("kind", [StreamingDetector, ConceptDrift])
def test_the_detector_given_stays_as_it_was(kind, stream):
    detector = fr.baselines.DDM(detect=4)
    named = kind(detector)
    named.update(*stream[0])
    assert detector.events == 0
    assert named.detector.parameters == detector.parameters
