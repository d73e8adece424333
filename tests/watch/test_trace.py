"""What is kept for a picture: the counts of a stream over time, in flat memory, however it is cut."""

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.findings import Share
from fourrates.watch import Watch
from fourrates.watch.trace import Trace, normal_levels, observations


def events(size, seed=1, classes=2):
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, size).astype(np.uint16)
    pred = np.where(random.random(size) < 0.8, truth, random.integers(0, classes, size)).astype(np.uint16)
    return truth, pred


def counted(truth, pred, classes=2):
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (truth, pred), 1)
    return counts.tolist()


@pytest.mark.parametrize("piece", [1, 7, 1000, 20_000])
@pytest.mark.parametrize("classes", [2, 5])
def test_every_bin_has_the_counts_of_its_events_wherever_the_stream_is_cut(piece, classes):
    truth, pred = events(20_000, classes=classes)
    if piece == 1:
        truth, pred = truth[:3000], pred[:3000]
    trace = Trace(fr.LFR(labels=range(classes)), bins=256)
    for start in range(0, truth.size, piece):
        trace.take(truth[start : start + piece], pred[start : start + piece])
    edges = trace.edges.tolist()
    assert edges[0] == 0
    assert edges[-1] == trace.events == truth.size
    assert 128 <= len(trace.counts) <= 256
    for counts, start, end in zip(trace.counts.tolist(), edges, edges[1:], strict=False):
        assert counts == counted(truth[start:end], pred[start:end], classes)
    middle = edges[len(edges) // 2]
    assert trace.between(0, middle).tolist() == counted(truth[:middle], pred[:middle], classes)
    assert trace.between(middle, truth.size).tolist() == counted(truth[middle:], pred[middle:], classes)


def test_a_resumed_stream_is_counted_from_where_it_is():
    truth, pred = events(500)
    detector = fr.FourRates()
    detector.update_many(truth[:300], pred[:300])
    trace = Trace(detector)
    trace.take(truth[300:], pred[300:])
    assert (trace.first, trace.events) == (300, 500)
    assert trace.between(400, 500).tolist() == counted(truth[400:], pred[400:])


def test_a_curve_has_points_of_equally_many_observations_and_no_spike_at_its_start():
    """Each point is the mean of 400 or so: five standard errors are 0.1."""
    truth, pred = events(40_000)
    trace = Trace(fr.FourRates())
    trace.take(truth, pred)
    curve = trace.curve("tpr", points=50)
    right = (pred == 1)[truth == 1]
    assert 45 <= curve.value.size <= 51
    assert abs(curve.value - right.mean()).max() < 5 * np.sqrt(0.25 / curve.n)
    assert curve.n == -(-right.size // 50)
    assert (np.diff(curve.event) > 0).all()


def test_too_few_observations_make_one_point_and_none_make_none():
    trace = Trace(fr.FourRates())
    assert trace.curve("tpr").value.size == 0
    trace.take(np.array([1, 1, 0], np.uint16), np.array([1, 0, 0], np.uint16))
    assert trace.curve("tpr").value.tolist() == [0.5]
    assert trace.curve("similarity").value.size == 0


def test_the_clock_rises_even_if_times_do_not_and_needs_two_of_them():
    truth, pred = events(1000)
    times = np.datetime64("2026-01-01", "us") + np.arange(1000) * np.timedelta64(1, "s")
    times[500], times[700] = np.datetime64("NaT"), times[0]
    trace = Trace(fr.FourRates(), bins=128)
    trace.take(truth, pred, times)
    at, known = trace.clock()
    assert (np.diff(known) >= 0).all()
    assert abs(np.interp(640, at, known) - times[640].astype(np.int64)) <= 1e6
    still = Trace(fr.FourRates())
    still.take(truth, pred, np.full(1000, times[3]))
    assert still.clock()[0].size == 0


@pytest.mark.parametrize(
    ("rate", "wanted"),
    [
        ("tnr", (100, 90)),
        ("tpr", (20, 15)),
        ("npv", (95, 90)),
        ("ppv", (25, 15)),
        ("error", (120, 15)),
        ("accuracy", (120, 105)),
        ("recall", (20, 15)),
        ("precision", (25, 15)),
    ],
)
def test_every_rate_is_made_of_the_counts(rate, wanted):
    n, right = observations(np.array([[90, 10], [5, 15]]), rate, (0, 1))
    assert (n, right) == wanted


def levels(detector, accept=False):
    """Of tpr: 0.9, then 0.5 from event 6,000 on."""
    random = np.random.default_rng(2)
    truth = random.integers(0, 2, 12_000)
    low = (np.arange(12_000) >= 6000) & (truth == 1)
    pred = np.where(random.random(12_000) < np.where(low, 0.5, 0.9), truth, 1 - truth)
    watch = Watch(detector, trace=Trace)
    found = [one for batch in io.read((truth, pred)) for one in watch.update(batch)]
    if accept:
        found.append(watch.accept())
    return normal_levels(watch.traces[None], "tpr", found, watch.segments[None].rates["tpr"]), watch


def test_normal_stays_while_a_drift_is_open():
    ((start, level),), watch = levels(fr.FourRates())
    assert start == 0
    assert level == watch.segments[None].rates["tpr"].normal.value == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(("detector", "accept"), [(fr.FourRates(), True), (fr.LFR(detect=1e-7), False)])
def test_a_new_normal_begins_where_it_was_accepted_or_the_detector_started_afresh(detector, accept):
    found, _ = levels(detector, accept)
    (first, high), (second, low) = found
    assert first == 0
    assert second == pytest.approx(6000, abs=100)
    assert [high, low] == pytest.approx([0.9, 0.5], abs=3 * (Share.of(0.5 * 3000, 3000).upper - 0.5))
