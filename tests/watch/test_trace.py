"""What is kept for a picture: the statistics as the detector has them, and no excursion lost."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.streams import SCENARIOS
from fourrates.watch import Watch
from fourrates.watch.trace import Trace, ordered


def events(size, seed=1, classes=2):
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, size).astype(np.uint16)
    pred = np.where(random.random(size) < 0.8, truth, random.integers(0, classes, size)).astype(np.uint16)
    return truth, pred


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [{}, {"decay": (0.8, 0.9)}, {"labels": range(5)}, {"detect": {"tpr": 1e-3}}, {"arl": 20_000}],
)
def test_the_trace_ends_where_the_detector_does(parameters):
    detector = fr.LFR(**parameters)
    trace = Trace(detector)
    truth, pred = events(20_000, classes=len(detector.labels.values))
    done = 0
    while done < truth.size:
        taken, drifts = detector.update_coded(truth, pred, done)
        trace.take(truth[done : done + taken], pred[done : done + taken])
        done += taken
        for drift in drifts:
            trace.drift(drift)
    curves = trace.curves()
    test = 0
    for name, state in detector.rates.items():
        for one in state.statistics:
            assert curves[test].rate == name
            assert trace.last(test)[0] == state.n
            assert trace.last(test)[2] == one.value
            assert curves[test].value[-1] == one.value
            assert curves[test].warn_low[-1] == one.warn.lower
            assert curves[test].detect_high[-1] == one.detect.upper
            test += 1


@pytest.mark.parametrize("kind", [fr.FourRates, fr.baselines.DDM])
def test_without_bounds_the_rate_is_followed_through_every_drift(kind):
    """Over about a thirtieth of its observations: some 10,000 of each rate, so a memory of 500; the mean at first."""
    truth, pred = events(20_000)
    pred[10_000:] = np.where(np.arange(10_000) % 2, truth[10_000:], 1 - truth[10_000:])
    run = Watch(kind(), trace=lambda detector: Trace(detector, 400_000))
    from fourrates import io

    assert [one for batch in io.read((truth, pred)) for one in run.update(batch)]
    for i, curve in enumerate(run.traces[None].curves()):
        own = np.flatnonzero((truth, pred)[i // 2] == i % 2)
        value, wanted = 0.5, {}
        for n, event in enumerate(own.tolist(), 1):
            decay = min(0.998, 1 - 1 / (n + 1))
            value = decay * value + (1 - decay) * (truth[event] == pred[event])
            wanted[event] = value
        assert curve.events.size > 1000
        assert curve.value.tolist() == [wanted[event] for event in curve.events.tolist()]
        assert np.isnan(curve.warn_low).all()


def test_what_crossed_comes_first():
    stream = SCENARIOS["Imbalance2"].stream(seed=7)
    run = Watch(fr.FourRates(), trace=Trace)
    from fourrates import io

    found = [one for batch in io.read(stream) for one in run.update(batch)]
    curves, enough = ordered(run.traces[None].curves(), found)
    assert enough == 4
    assert {curve.rate for curve in curves[: len(found[0].changes)]} == {c.rate for c in found[0].changes}


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"detect": 1e-9}, {"decay": (0.9, 0.94), "detect": 4e-9}])
def test_no_excursion_is_lost(parameters):
    """Wherever a statistic left its warning bounds in a bin, a point outside is kept of it; so are its extremes."""
    detector = fr.LFR(**parameters)
    tests = sum(len(state.statistics) for state in detector.rates.values())
    trace = Trace(detector, points=400 * tests)
    truth, pred = (column[:12_000].copy() for column in events(100_000))
    pred[:20] = 1 - truth[:20]  # a first bin with extremes
    bits = {name: [] for name in detector.rates}
    for t, g in zip(truth.tolist(), pred.tolist(), strict=True):
        detector.update(t, g)
        rates = detector.rates
        for name in (("tnr", "tpr")[t], ("npv", "ppv")[g]):
            state = rates[name]
            bits[name].append((detector.events - 1, state.statistic, state.warn.lower, state.warn.upper))
    trace.take(truth, pred)
    width = trace._recorder.width
    assert 12_000 / width <= 100
    firsts = {curve.rate: curve for curve in reversed(trace.curves())}
    for curve in firsts.values():
        every = np.array(bits[curve.rate])
        bins = every[:, 0].astype(int) // width
        kept = curve.events // width
        for one in np.unique(bins):
            full = every[bins == one]
            mine = kept == one
            assert curve.value[mine].min() == full[:, 1].min()
            assert curve.value[mine].max() == full[:, 1].max()
            assert (curve.value < curve.warn_low)[mine].any() == (full[:, 1] < full[:, 2]).any()
            assert (curve.value > curve.warn_high)[mine].any() == (full[:, 1] > full[:, 3]).any()


def test_every_point_close_to_a_drift_is_kept():
    stream = SCENARIOS["Imbalance2"].stream(seed=7, length=400_000, change=200_000)
    truth, pred = (side.astype(np.uint16) for side in stream)
    run = Watch(fr.LFR(detect=1e-6), trace=Trace)
    from fourrates import io

    (found, *_) = [one for batch in io.read((truth, pred)) for one in run.update(batch)]
    (curve,) = [curve for curve in run.traces[None].curves() if curve.rate == found.changes[0].rate]
    window = np.flatnonzero(truth[found.since : found.at + 1] == 1) + found.since
    assert np.isin(window, curve.events).all()


def test_the_size_does_not_grow_with_the_stream():
    sizes = []
    for length in (10**5, 10**6):
        trace = Trace(fr.LFR(detect=1e-9))
        trace.take(*events(length))
        sizes.append(sum(curve.events.size for curve in trace.curves()))
    assert sizes[1] < 1.5 * sizes[0]
    assert sizes[1] < 36_000


def test_labels_may_be_anything_hashable():
    trace = Trace(fr.LFR(labels=[("spam", 1), ("ham", 2)]))
    assert len(trace.curves()) == 4


def test_a_resumed_detector_is_followed_from_where_it_stands():
    detector = fr.LFR()
    truth, pred = events(3000)
    detector.update_coded(truth, pred)
    trace = Trace(detector)
    assert trace.events == trace.first == detector.events
    more = events(500, seed=2)
    detector.update_many(*more)
    trace.take(*more)
    assert [trace.last(i)[2] for i in range(4)] == [state.statistic for state in detector.rates.values()]
