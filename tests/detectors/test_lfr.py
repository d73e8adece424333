"""LFR against a slow and obvious reference, the paper's rules, and the paper's scenarios."""

import math
import tracemalloc
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fourrates as fr
from fourrates import null
from fourrates.evaluate import score
from fourrates.streams import SCENARIOS


def reference(pairs, classes, decays=(0.9,), warn=0.01, detect=1e-5, sides="both"):
    """Algorithm 1, line by line: (at, since, [(rate, direction)]) of each drift."""
    levels = sorted({warn / len(decays), detect / len(decays)}, reverse=True)
    tables = [null.table(decay, levels) for decay in decays]

    def fresh():
        return {
            f"{kind}:{c}": {"n": 0, "k": 0, "R": [0.5] * len(decays), "beyond": [None, None]}
            for kind in ("recall", "precision")
            for c in range(classes)
        }

    def beyond(level, rate):
        """Direction in which a statistic of the rate lies outside its bounds, or None."""
        for own, statistic in zip(tables, rate["R"], strict=True):
            if sides != "up" and statistic < own.lower(level, rate["n"], rate["k"]):
                return "down"
            if sides != "down" and statistic > own.upper(level, rate["n"], rate["k"]):
                return "up"
        return None

    rates, warned, drifts = fresh(), None, []
    for at, (truth, pred) in enumerate(pairs):
        for rate in (rates[f"recall:{truth}"], rates[f"precision:{pred}"]):  # the others stay where they are
            rate["n"] += 1
            rate["k"] += truth == pred
            rate["R"] = [d * r + (1 - d) * (truth == pred) for d, r in zip(decays, rate["R"], strict=True)]
            rate["beyond"] = [beyond(level, rate) for level in (0, 1)]
        if all(rate["beyond"][0] is None for rate in rates.values()):
            warned = None
        elif warned is None:
            warned = at
        moved = [(name, rate["beyond"][1]) for name, rate in rates.items() if rate["beyond"][1]]
        if moved:
            drifts.append((at, warned, moved))
            rates, warned = fresh(), None
    return drifts


def told(drifts):
    """The same of a detector's drifts."""
    names = {"tnr": "recall:0", "tpr": "recall:1", "npv": "precision:0", "ppv": "precision:1"}
    return [(d.at, d.since, [(names.get(c.rate, c.rate), c.direction) for c in d.changes]) for d in drifts]


def restless(classes, size, seed):
    """Pairs whose confusion changes every few hundred events."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, size)
    accuracy = random.uniform(0.2, 0.98, (size // 300 + 1, classes))[np.arange(size) // 300, truth]
    other = (truth + random.integers(1, classes, size)) % classes
    return truth, np.where(random.random(size) < accuracy, truth, other)


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "size"), [(2, 6_000), (3, 6_000), (50, 6_000)])
@pytest.mark.parametrize("decays", [(0.9,), (0.7, 0.94)])
@pytest.mark.parametrize("sides", ["both", "down", "up"])
def test_it_does_what_the_algorithm_says(classes, size, decays, sides):
    truth, pred = restless(classes, size, seed=classes)
    detector = fr.LFR(decays, 0.05, 1e-3, labels=range(classes), sides=sides)
    found = told(detector.update_many(truth, pred))
    pairs = zip(truth.tolist(), pred.tolist(), strict=True)
    assert found == reference(pairs, classes, decays, 0.05, 1e-3, sides)
    assert len(found) > 2


@pytest.mark.slow
def test_it_does_what_the_algorithm_says_in_a_long_quiet_stream():
    # Far beyond the window, where the kernel leaves the table alone for n / 32 observations at a time.
    random = np.random.default_rng(3)
    truth = random.integers(0, 2, 60_000)
    pred = np.where(random.random(truth.size) < 0.85, truth, 1 - truth)
    detector = fr.LFR(0.9, 0.05, 1e-4)
    found = told(detector.update_many(truth, pred))
    assert found == reference(zip(truth.tolist(), pred.tolist(), strict=True), 2, (0.9,), 0.05, 1e-4)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=400))
@settings(max_examples=60, deadline=None)
def test_any_sequence_is_judged_as_the_algorithm_says(pairs):
    detector = fr.LFR(0.6, 0.3, 0.1, labels=(0, 1, 2))
    found = [drift for drift in (detector.update(*pair) for pair in pairs) if drift]
    assert told(found) == reference(pairs, 3, (0.6,), 0.3, 0.1)


@pytest.mark.parametrize("rate", ["tpr", "tnr", "ppv", "npv"])
@pytest.mark.parametrize("direction", ["down", "up"])
def test_both_directions_of_every_rate_are_found(rate, direction):
    good = {"tpr": (1, 1), "tnr": (0, 0), "ppv": (1, 1), "npv": (0, 0)}[rate]
    bad = {"tpr": (1, 0), "tnr": (0, 1), "ppv": (0, 1), "npv": (1, 0)}[rate]
    random = np.random.default_rng(8)
    share = np.repeat([0.8, 0.1] if direction == "down" else [0.2, 0.9], 500)
    y_true, y_pred = np.where((random.random(1000) < share)[:, None], good, bad).T
    only = dict.fromkeys(("tpr", "tnr", "ppv", "npv"), direction)
    drift = fr.LFR(0.9, 0.01, 1e-4, sides=only).update_many(y_true, y_pred)[0]
    assert 500 <= drift.at < 540
    assert (rate, direction) in {(change.rate, change.direction) for change in drift.changes}


def test_a_side_that_is_not_watched_stays_silent():
    y_true, y_pred = SCENARIOS["Balance1"].stream(seed=9)  # tnr falls
    assert [c.rate for d in fr.LFR().update_many(y_true, y_pred) for c in d.changes] == ["tnr"]
    assert fr.LFR(sides="up").update_many(y_true, y_pred) == []
    assert fr.LFR(sides={"tnr": "up", "ppv": "up", "npv": "up"}).update_many(y_true, y_pred) == []


def fall(size=40):
    """Right 200 times, then wrong: every event of class 1."""
    return [(1, 1)] * 200 + [(1, 0)] * size


def test_since_is_where_the_unbroken_warning_began():
    detector = fr.LFR(0.9, 0.01, 1e-9)
    warnings, drift = [], None
    random = np.random.default_rng(4)
    for pair in [(1, int(random.random() < 0.8)) for _ in range(300)] + [(1, 0)] * 60:
        drift = detector.update(*pair)
        if drift:
            break
        warnings.append(detector.warning_detected)
    quiet = max(i for i, warned in enumerate(warnings) if not warned)
    assert drift.since == quiet + 1
    assert drift.window == range(drift.since, drift.at + 1)


def test_a_lapsed_warning_is_forgotten():
    detector = fr.LFR(0.9, 0.01, 1e-9)
    history = []
    for bit in [1] * 150 + [0] * 3 + [1] * 100 + [0] * 3:
        detector.update(1, bit)
        history.append(detector.warning_detected)
    assert history[152]
    assert not history[240]
    assert history[-1]
    drift = None
    while drift is None:
        drift = detector.update(1, 0)
    assert drift.since > 240


def test_a_warning_of_one_rate_lasts_while_others_are_touched():
    # tpr goes into warning; events of the other class, right ones, do not end it.
    detector = fr.LFR(0.9, 0.01, 1e-9, sides={"npv": "up"})
    detector.update_many([1] * 200, [1] * 200)
    detector.update_many([1, 1], [0, 0])
    assert detector.warning_detected
    detector.update_many([0] * 5, [0] * 5)
    assert detector.warning_detected


def test_a_drift_restarts_the_rates_and_keeps_counting():
    detector = fr.LFR(0.9, 0.01, 1e-4)
    drift = detector.update_many(*zip(*fall(), strict=True), first_only=True)[0]
    assert detector.drift_detected
    assert not detector.warning_detected
    assert detector.events == drift.at + 1
    assert {rate.n for rate in detector.rates.values()} == {0}
    assert sum(map(sum, drift.confusion)) == drift.at + 1
    detector.update(1, 1)
    assert not detector.drift_detected


def test_a_drift_says_what_moved():
    drift = fr.LFR(0.9, 0.01, 1e-4).update_many(*zip(*fall(), strict=True))[0]
    (change,) = [change for change in drift.changes if change.rate == "tpr"]
    wrong = drift.at - 199
    n, k = 200 + wrong, 200
    assert (change.direction, change.n, change.decay) == ("down", n, 0.9)
    assert change.statistic == pytest.approx((1 - 0.5 * 0.9**200) * 0.9**wrong)
    assert change.expected == pytest.approx(k / n)
    assert change.statistic < change.bound == null.bounds(n, k, 1e-4).lower
    assert drift.confusion == ((0, 0), (wrong, 200))
    assert "tpr down" in str(drift)


@pytest.mark.slow
def test_rates_say_where_each_rate_stands():
    detector = fr.LFR()
    detector.update_many([1, 1, 1, 0], [1, 1, 0, 0])
    tpr = detector.rates["tpr"]
    assert (tpr.n, tpr.estimate) == (3, 2 / 3)
    assert tpr.statistic == pytest.approx(0.9 * (0.9 * (0.9 * 0.5 + 0.1) + 0.1))
    assert tpr.detect == null.bounds(3, 2, 1e-5)
    assert tpr.warn == null.bounds(3, 2, 0.01)
    assert detector.rates["npv"].n == 2
    assert math.isnan(fr.LFR().rates["ppv"].estimate)


@pytest.mark.slow
def test_levels_and_decays_may_differ_by_rate():
    detector = fr.LFR({"tpr": 0.85, "ppv": (0.7, 0.85)}, {"tnr": 0.1}, {"tpr": 1e-3, "npv": 1e-7})
    rates = detector.rates
    assert [[s.decay for s in rates[name].statistics] for name in ("tpr", "tnr", "ppv")] == [
        [0.85],
        [0.9],
        [0.7, 0.85],
    ]
    detector.update_many(*restless(2, 200, 1))
    tpr, npv, ppv = (detector.rates[name] for name in ("tpr", "npv", "ppv"))
    assert tpr.detect == null.bounds(tpr.n, round(tpr.estimate * tpr.n), 1e-3, 0.85)
    assert npv.detect == null.bounds(npv.n, round(npv.estimate * npv.n), 1e-7)
    # Two decays share the level.
    assert ppv.statistics[1].warn == null.bounds(ppv.n, round(ppv.estimate * ppv.n), 0.005, 0.85)


@pytest.mark.slow
@pytest.mark.slow
def test_several_decays_share_one_guarantee():
    # 200 stable streams of 5,000: an alarm a step and side at most at the level, however many decays share it.
    random = np.random.default_rng(6)
    detector = fr.LFR((0.8, 0.9, 0.94), 0.01, 1e-4, sides="down")
    alarms = 0
    for _ in range(200):
        detector.reset()
        truth = random.integers(0, 2, 5_000)
        alarms += len(detector.update_many(truth, np.where(random.random(5_000) < 0.8, truth, 1 - truth)))
    expected = 200 * 5_000 * 2 * 1e-4
    assert alarms <= expected + 4 * math.sqrt(expected)


# Hits and false alarms per 100 streams of an earlier, independent prototype of 100 streams a scenario.
PROTOTYPE = {
    "Balance1": (31, 8),
    "Balance2": (11, 9),
    "Balance3": (14, 8),
    "Imbalance1": (99, 9),
    "Imbalance2": (95, 5),
    "Imbalance3": (97, 3),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_papers_scenarios_come_out_as_in_the_prototype(name):
    streams, hits, false = 200, 0, 0
    detector = fr.LFR(decay=0.9, warn=0.01, detect=1e-5)
    for seed in range(streams):
        detector.reset()
        found = score(detector.update_many(*SCENARIOS[name].stream(seed)), changes=5_000, within=200)
        hits += found.hits
        false += found.false_alarms
    # Both are samples: a share of hits varies as a binomial (one more hit and miss each, so that 99 of 100 is not taken
    # for certainty), a number of false alarms as a Poisson count. Three standard errors of the difference.
    share, rate = hits / streams, false / streams
    old_share, old_rate = (PROTOTYPE[name][0] + 1) / 102, PROTOTYPE[name][1] / 100
    spread = math.sqrt(old_share * (1 - old_share) * (1 / 100 + 1 / streams))
    assert abs(share - PROTOTYPE[name][0] / 100) <= 3 * spread
    assert abs(rate - old_rate) <= 3 * math.sqrt(old_rate / 100 + rate / streams)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decay": 1.0}, r"decay 1.0 is not in \(0, 1\)"),
        ({"decay": []}, r"decay \[\] must be one number or several different ones"),
        ({"decay": (0.9, 0.9)}, r"several different ones"),
        ({"decay": {"recall": 0.9}}, r"decay: rate 'recall' is not one of \('tnr', 'tpr', 'npv', 'ppv'\)"),
        ({"warn": 0.5}, r"tnr: warn 0.5 is not in \[1e-09, 0.5\)"),
        ({"detect": 0}, r"tnr: detect 0.0 is not in"),
        ({"warn": 1e-5}, r"tnr: warn 1e-05 is not larger than detect 1e-05"),
        ({"detect": {"ppv": 0.1}}, r"ppv: warn 0.01 is not larger than detect 0.1"),
        ({"sides": "left"}, r"sides 'left' of tnr is not one of \('both', 'down', 'up'\)"),
        ({"null": "bayes"}, r"null 'bayes' is not one of"),
        ({"detect": 2e-9, "decay": (0.8, 0.9, 0.95)}, r"detect, as shared, .* is not in"),
        ({"labels": (1,)}, r"1 labels; at least two"),
        ({"labels": (0, 1, True)}, r"label True at position 2 of labels is there twice"),
        ({"labels": ("a", None)}, r"None at position 1 of labels cannot be a label"),
        ({"positive": 2}, r"positive 2 is not one of \(0, 1\)"),
        ({"labels": (0, 1, 2), "positive": 2}, r"positive 2 goes with two labels, not with 3"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fr.LFR(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decay": [None]}, "decay None is not a number"),
        ({"decay": "fast"}, "decay 'fast' is not a number"),
        ({"warn": "often"}, "tnr: warn 'often' is not a number"),
        ({"labels": {"ham", "spam"}}, "labels must be several labels in an order"),
        ({"labels": 5}, "labels must be several labels in an order, such as a list, not 5"),
        ({"warn": "0.01"}, "tnr: warn '0.01' is not a number"),
        ({"labels": "ab"}, "labels must be several labels in an order, such as a list, not 'ab'"),
    ],
)
def test_parameters_of_the_wrong_kind_are_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        fr.LFR(**arguments)


def test_positive_says_which_label_the_rates_are_about():
    detector = fr.LFR(labels=("bad", "good"), positive="bad")
    detector.update("bad", "bad")
    assert detector.rates["tpr"].n == 1
    assert astuple(detector.rates["tnr"])[0] == 0


@pytest.mark.slow
def test_millions_of_events_leave_no_trace_in_memory():
    detector = fr.LFR(labels=range(3))
    truth, pred = (array.astype(np.uint8) for array in restless(3, 100_000, 2))

    def feed(times):
        for _ in range(times):
            detector.update_many(truth, pred)

    tracemalloc.start()
    feed(10)
    size, before = len(detector.to_bytes()), tracemalloc.get_traced_memory()[0]
    feed(20)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert detector.events == 3_000_000
    assert len(detector.to_bytes()) < 1.5 * size < 6_000  # packed: not always equally small
    # Python keeps up to 2,000 freed tuples of each small size for later, some 0.1 MB. A byte an event would be 2 MB.
    assert grown < 500_000


def test_labels_of_any_kind_make_batches_too():
    for labels in ([(0, 1), (1, 0), (1, 1)], ["a", 1, 2.5]):
        detector, one_by_one = fr.LFR(labels=labels), fr.LFR(labels=labels)
        detector.update_many(labels * 5, labels[::-1] * 5)
        for pair in zip(labels * 5, labels[::-1] * 5, strict=True):
            one_by_one.update(*pair)
        assert detector.rates == one_by_one.rates


def test_labels_that_read_alike_keep_their_own_rates():
    assert set(fr.LFR(labels=[1, "1", 2]).rates) >= {"recall:1", "recall:'1'"}


def test_labels_that_would_not_come_back_are_not_saved():
    with pytest.raises(TypeError, match="to_bytes saves labels that are strings, numbers or bools, not"):
        fr.LFR(labels=[(0, 1), (1, 0)]).to_bytes()


def test_a_masked_event_is_refused_by_its_position():
    masked = np.ma.array([0, 1, 1], mask=[0, 1, 0])
    with pytest.raises(ValueError, match="position 1: 'masked' in column 'y_pred'"):
        fr.LFR().update_many([0, 1, 1], masked)


def test_four_thousand_classes_are_the_most():
    with pytest.raises(ValueError, match="4097 labels; at least two and at most 4,096"):
        fr.LFR(labels=range(4097))
