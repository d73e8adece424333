"""DDM-OCI: a trace worked by hand, the rules at ties and for many classes, and what it is blind to."""

import math

import numpy as np
import pytest
from traces import alarms_around_the_change, level, rows

import fourrates as fr
from fourrates.streams import SCENARIOS

# With decay 3/4 and 3 positives before anything is trusted. n counts positives; R <- 3/4 R + 1/4 if recognised, from 0;
# s = root of R (1 - R) / n. The reference is where R + s was greatest: event 7, R = 0.762695 and s = 0.190258, since at
# event 12 the larger R is outweighed by the smaller s. best = 0.762695 - s; warn and detect lie 2 and 3 s below.
TRACE = """
event truth pred  n        R        s      R+s       R-s     best     warn    detect state
    0     0     1  0 0.000000 0.000000 0.000000  0.000000        -        -         - quiet
    1     1     1  1 0.250000 0.433013 0.683013 -0.183013        -        -         - quiet
    2     1     1  2 0.437500 0.350780 0.788280  0.086720        -        -         - quiet
    3     0     0  2 0.437500 0.350780 0.788280  0.086720        -        -         - quiet
    4     1     1  3 0.578125 0.285129 0.863254  0.292996 0.292996 0.007866 -0.277263 quiet
    5     1     1  4 0.683594 0.232537 0.916130  0.451057 0.451057 0.218520 -0.014016 quiet
    6     0     1  4 0.683594 0.232537 0.916130  0.451057 0.451057 0.218520 -0.014016 quiet
    7     1     1  5 0.762695 0.190258 0.952954  0.572437 0.572437 0.382179  0.191920 quiet
    8     1     0  6 0.572021 0.201995 0.774017  0.370026 0.572437 0.382179  0.191920 warning
    9     0     0  6 0.572021 0.201995 0.774017  0.370026 0.572437 0.382179  0.191920 warning
   10     1     1  7 0.679016 0.176454 0.855471  0.502562 0.572437 0.382179  0.191920 quiet
   11     1     1  8 0.759262 0.151155 0.910417  0.608107 0.572437 0.382179  0.191920 quiet
   12     1     1  9 0.819447 0.128216 0.947662  0.691231 0.572437 0.382179  0.191920 quiet
   13     0     0  9 0.819447 0.128216 0.947662  0.691231 0.572437 0.382179  0.191920 quiet
   14     1     0 10 0.614585 0.153906 0.768491  0.460679 0.572437 0.382179  0.191920 quiet
   15     1     1 11 0.710939 0.136683 0.847622  0.574256 0.572437 0.382179  0.191920 quiet
   16     0     1 11 0.710939 0.136683 0.847622  0.574256 0.572437 0.382179  0.191920 quiet
   17     1     0 12 0.533204 0.144019 0.677223  0.389185 0.572437 0.382179  0.191920 quiet
   18     1     0 13 0.399903 0.135868 0.535771  0.264035 0.572437 0.382179  0.191920 warning
   19     0     1 13 0.399903 0.135868 0.535771  0.264035 0.572437 0.382179  0.191920 warning
   20     1     0 14 0.299927 0.122466 0.422393  0.177461 0.572437 0.382179  0.191920 drift
"""


def test_every_step_of_the_trace_is_as_worked_by_hand():
    detector = fr.baselines.DDMOCI(decay=0.75, minimum=3)
    for row in rows(TRACE):
        drift = detector.update(int(row["truth"]), int(row["pred"]))
        assert level(detector) == row["state"], row
        if drift:
            break
        state = detector.rates["tpr"]
        assert state.n == row["n"]
        if state.n == 0:
            assert math.isnan(state.estimate)
            continue
        assert state.estimate == pytest.approx(float(row["R"]), abs=5e-7)
        assert state.estimate - state.statistic == pytest.approx(float(row["s"]), abs=1e-6)
        assert state.statistic == pytest.approx(float(row["R-s"]), abs=5e-7)
        if row["best"] is None:
            assert state.expected is None
            assert state.warn.lower == state.detect.lower == -math.inf
        else:
            assert state.expected == pytest.approx(float(row["best"]), abs=5e-7)
            assert state.warn.lower == pytest.approx(float(row["warn"]), abs=5e-7)
            assert state.detect.lower == pytest.approx(float(row["detect"]), abs=1e-6)
    assert (drift.at, drift.since) == (20, 18)
    assert drift.confusion == ((3, 4), (5, 9))
    (change,) = drift.changes
    assert (change.rate, change.direction, change.n, change.decay) == ("tpr", "down", 14, 0.75)
    assert change.statistic == pytest.approx(0.177461, abs=5e-7)
    assert change.bound == pytest.approx(0.191920, abs=1e-6)
    assert change.expected == pytest.approx(0.572437, abs=5e-7)


def test_after_a_drift_it_starts_afresh_and_counts_on():
    truth, pred = ([int(row[name]) for row in rows(TRACE)] for name in ("truth", "pred"))
    first, second = fr.baselines.DDMOCI(decay=0.75, minimum=3).update_many(truth + truth, pred + pred)
    assert (second.at, second.since) == (first.at + 21, first.since + 21)
    assert second.changes == first.changes


def test_a_class_that_is_never_recognised_ties_with_its_bound_and_stays_quiet():
    detector = fr.baselines.DDMOCI()
    assert detector.update_many([1] * 1000, [0] * 1000) == []
    assert not detector.warning_detected
    state = detector.rates["tpr"]
    assert state.statistic == state.warn.lower == state.detect.lower == 0.0


def test_a_class_that_is_always_recognised_stays_quiet():
    detector = fr.baselines.DDMOCI()  # R comes so near to 1 that s vanishes
    assert detector.update_many([1] * 10_000, [1] * 10_000) == []
    assert not detector.warning_detected


def test_nothing_among_the_negatives_matters():
    random = np.random.default_rng(4)
    truth, pred = (array.astype(int) for array in SCENARIOS["Imbalance2"].stream(seed=4))
    scrambled = np.where(truth == 1, pred, random.integers(0, 2, truth.size))
    seen, unseen = (fr.baselines.DDMOCI().update_many(truth, preds) for preds in (pred, scrambled))
    assert len(seen) > 0
    assert [(drift.at, drift.since, drift.changes) for drift in seen] == [
        (drift.at, drift.since, drift.changes) for drift in unseen
    ]


@pytest.mark.slow
def test_a_drift_that_keeps_the_recall_is_invisible():
    # The tnr falls from 0.8 to 0.6, the tpr stays at 0.8. Four deviations of the difference, two-sided: a chance of 1
    # in 16,000 if it is blind. It cannot pass by alarming alike everywhere: where the tpr falls from 0.75 to 0.25, the
    # alarms after the change must exceed those before by six deviations.
    def make():
        return fr.baselines.DDMOCI(warn=10, detect=20)

    before, after = alarms_around_the_change(make, SCENARIOS["Balance1"], 400)
    assert abs(after - before) <= 4 * math.sqrt(after + before)
    before, after = alarms_around_the_change(make, SCENARIOS["Imbalance2"], 400)
    assert after - before > 6 * math.sqrt(after + before)


def test_the_class_to_watch_can_be_any_of_many():
    labels = ("cat", "dog", "fish")
    assert list(fr.baselines.DDMOCI(labels=labels).rates) == ["recall:fish"]
    assert list(fr.baselines.DDMOCI(labels=labels, positive="cat").rates) == ["recall:cat"]
    assert list(fr.baselines.DDMOCI(labels=labels[:2], positive="cat").rates) == ["tpr"]
    detector = fr.baselines.DDMOCI(labels=labels, positive="dog")
    detector.update("dog", "dog")
    detector.update("cat", "dog")
    assert detector.rates["recall:dog"].n == 1
    assert detector.clone().rates.keys() == detector.rates.keys()


@pytest.mark.parametrize("labels", [("cat", "dog"), ("cat", "dog", "fish")])
def test_a_class_to_watch_that_is_none_is_refused(labels):
    with pytest.raises(ValueError, match=r"positive 'cow' is not one of \('cat', 'dog'"):
        fr.baselines.DDMOCI(labels=labels, positive="cow")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decay": 1.0}, r"decay 1.0 is not in \(0, 1\)"),
        ({"decay": math.nan}, r"decay nan is not in \(0, 1\)"),
        ({"warn": -1}, "warn -1.0 is not a positive number of deviations"),
        ({"detect": 2}, "warn 2.0 is not smaller than detect 2.0"),
        ({"minimum": "30"}, "minimum '30' is not a whole number"),
    ],
)
def test_bad_parameters_are_refused_by_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        fr.baselines.DDMOCI(**arguments)
