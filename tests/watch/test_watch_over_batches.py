"""One watch, one stream or many segments: the same findings as single detectors, whole or cut; no trust in bytes."""

import tracemalloc
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from placing import bare, without_rows

import fourrates as fr
from fourrates import io
from fourrates.state import pack, unpack
from fourrates.watch.trace import Trace

DETECTORS = [fr.FourRates(5000, warn=100), fr.LFR(), fr.baselines.DDM()]
NAMES = [type(one).__name__ for one in DETECTORS]


def frame(size=30_000, streams=20, seed=0):
    """Some streams, of which one loses most of its true positives half way."""
    random = np.random.default_rng(seed)
    stream = random.integers(0, streams, size)
    truth = (random.random(size) < 0.3).astype(int)
    wrong = np.where((stream == 3) & (np.arange(size) > size // 2) & (truth == 1), 0.7, 0.1)
    pred = truth ^ (random.random(size) < wrong)
    return {"model": np.array([f"m{k}" for k in range(streams)])[stream], "y_true": truth, "y_pred": pred}


def taken(watch, data, cuts=()):
    """What is found in the rows between cuts, the watch saved and brought back at each."""
    found = []
    edges = [0, *cuts, len(data["y_true"])]
    for start, end in pairwise(edges):
        events = io.read({name: column[start:end] for name, column in data.items()}, columns=io.Columns(by="model"))
        for batch in events:
            found += watch.update(batch, events.keys)
        watch = fr.Watch.from_bytes(watch.to_bytes())
    return watch, found


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_many_streams_find_what_single_detectors_find(detector):
    data = frame()
    watch, found = taken(fr.Watch(detector), data)
    assert len(watch.segments) == 20
    got = {}
    for one in found:
        got.setdefault(one.segment, []).append(bare(one))
    assert "m3" in got
    for name in watch.segments:
        own = data["model"] == name
        single = detector.clone()
        single.update_many(data["y_true"][own], data["y_pred"][own])
        assert got.get(name, []) == list(single.findings)
        assert watch.segments[name].events == own.sum()
        assert watch.segments[name].warning_detected == single.warning_detected


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_many_streams_cut_anywhere_give_the_same_findings(detector):
    data = frame()
    _, whole = taken(fr.Watch(detector), data)
    random = np.random.default_rng(1)
    for _ in range(5):
        cuts = sorted(random.integers(1, 30_000, 6).tolist())
        watch, found = taken(fr.Watch(detector), data, cuts)
        assert without_rows(found) == without_rows(whole), cuts
        assert watch.events == 30_000


def courses(tprs, size=6_000, seed=3):
    """Two streams in one frame, balanced, whose tpr takes these values in turn; their tnr is 0.9."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, 2 * size * len(tprs))
    right = random.random(truth.size) < np.where(truth == 1, np.repeat(tprs, 2 * size), 0.9)
    return {"model": np.resize(["a", "b"], truth.size), "y_true": truth, "y_pred": np.where(right, truth, 1 - truth)}


DRIFT = ["drift", "confirmation"]


@pytest.mark.parametrize(
    ("tprs", "kinds"),
    [
        ((0.8, 0.5, 0.8), [*DRIFT, "recovery"]),
        ((0.8, 0.6, 0.4, 0.8), [*DRIFT, *DRIFT, "recovery"]),
        ((0.8, 0.5, 0.8, 0.5), [*DRIFT, "recovery", *DRIFT]),
        ((0.8, 0.95, 0.8), [*DRIFT, "recovery"]),  # from a rise too
        ((0.8, 0.3, 0.55), [*DRIFT, "improvement"]),
    ],
)
def test_a_drift_is_confirmed_and_ends_when_the_rate_is_back_whole_or_cut(tprs, kinds):
    detector, data = fr.FourRates(1_000_000), courses(tprs)
    _, whole = taken(fr.Watch(detector), data)
    watch, cut = taken(fr.Watch(detector), data, range(1_000, len(data["y_true"]), 2_500))
    assert without_rows(cut) == without_rows(whole)
    for name in "ab":
        own = [one for one in whole if one.segment == name and "tpr" in [change.rate for change in one.changes]]
        assert [one.kind for one in own] == kinds
        assert [one.closes for one in own] == [kind == "recovery" for kind in kinds]
        assert watch.segments[name].status == ("stable" if kinds[-1] == "recovery" else "drifted")


def test_with_a_reference_of_its_own_a_stream_drifts_from_it_and_recovers():
    reference, data = [[900, 100], [200, 800]], courses((0.5, 0.8))
    detector = fr.FourRates(1_000_000)
    watch, found = taken(fr.Watch(detector, references={"a": reference}), data)
    own = data["model"] == "a"
    single = fr.FourRates(1_000_000, reference=reference)
    single.update_many(data["y_true"][own], data["y_pred"][own])
    assert [bare(one) for one in found if one.segment == "a"] == list(single.findings)
    assert [one.kind for one in found if one.segment == "a" and one.kind != "shift"] == [*DRIFT, "recovery"]
    assert [one.changes[0].direction for one in found if one.segment == "b" and one.kind == "drift"] == ["up"]
    assert watch.without_reference == ["b"]


def test_shifts_of_the_classes_are_those_of_single_detectors():
    data = frame(streams=3)
    data["y_true"][20_000:] = np.arange(10_000) % 2
    data["y_pred"][20_000:] = data["y_true"][20_000:]
    watch, found = taken(fr.Watch(fr.FourRates(5000)), data)
    shifts = [finding for finding in found if finding.kind == "shift"]
    for name in watch.segments:
        own = data["model"] == name
        single = fr.FourRates(5000)
        single.update_many(data["y_true"][own], data["y_pred"][own])
        wanted = [one for one in single.findings if one.kind == "shift"]
        assert [bare(one) for one in shifts if one.segment == name] == wanted
        assert wanted
    for one in shifts:
        assert np.flatnonzero(data["model"] == one.segment)[one.at] == one.row - 1


def test_traces_of_many_streams_are_those_of_single_ones():
    data = frame()
    watch = fr.Watch(fr.LFR(), trace=Trace)
    events = io.read(data, columns=io.Columns(by="model"))
    for batch in events:
        watch.update(batch, events.keys)
    own = data["model"] == "m3"
    single = fr.Watch(fr.LFR(), trace=Trace)
    for batch in io.read((data["y_true"][own], data["y_pred"][own].astype(int))):
        single.update(batch)
    one, other = watch.traces["m3"], single.traces[None]
    assert one.edges.tolist() == other.edges.tolist()
    assert one.counts.tolist() == other.counts.tolist()


def test_a_watch_is_of_one_stream_or_of_segments():
    watch, _ = taken(fr.Watch(fr.LFR()), frame(1000))
    (batch,) = io.read(([0, 1], [0, 1]))
    with pytest.raises(io.InputError, match="in segments"):
        watch.update(batch)


@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_damaged_bytes_are_refused(detector):
    saved = taken(fr.Watch(detector), frame(3000))[0].to_bytes()
    random = np.random.default_rng(4)
    for at in random.integers(0, len(saved), 200).tolist():
        damaged = bytearray(saved)
        damaged[at] ^= 1 << int(random.integers(8))
        with pytest.raises(io.InputError):
            fr.Watch.from_bytes(bytes(damaged))
    for end in random.integers(0, len(saved), 50).tolist():
        with pytest.raises(io.InputError):
            fr.Watch.from_bytes(saved[:end])


@cache
def saved_watch(number):
    """A watch of many segments."""
    return taken(fr.Watch(DETECTORS[number]), frame())[0].to_bytes()


WRONG = [
    {"detector": "Detector"},
    {"detector": "os"},
    {"detector": 3},
    {"events": -1},
    {"events": 1.5},
    {"events": 10**30},
    {"streams": None},
    {"streams": ["m1"] * 20},
    {"streams": [None, "a"]},
    {"streams": ["a"]},
    {"streams": [["a"]] * 20},
    {"opened": [[99, "", "down", 7, 5, None, None, None, None, None]]},
    {"opened": [[0, "tpr", "down", 7, 5, None, None, None, None, None]]},
    {"opened": [[0, "", "sideways", 7, 5, None, None, None, None, None]]},
    {"opened": [[0, "", "down", 7]]},
    {"opened": [["0"]]},
    {"source": 3},
    {"marks": [1, 1]},
    {"marks": "x"},
]


WRONG_WATCH = [
    {"events": -1},
    {"events": 7},
    {"events": 10**30},
    {"predictions": -1},
    {"times": [1.5, None]},
    {"times": None},
    {"versions": []},
    {"versions": [[None, None, 0, 0, True]]},
    {"versions": [[None, None, 0, 0, False]] * 2},
    {"versions": [[3, None, 0, 0, False]]},
    {"versions": [["v1", "now", 0, 0, False]]},
    {"versions": [["v1", None, -1, 0, False]]},
    {"references": [["v1", None, [[1, 2, 3]]]]},
    {"references": [[1, None, [[90, 10], [20, 80]]]]},
]


def with_streams(watch, about, sections):
    """The bytes of a watch with other streams."""
    streams = pack("Streams", about, **sections)
    return pack("Watch", watch.about, **{**watch.sections, "0segments": streams})


@pytest.mark.parametrize("wrong", WRONG, ids=map(str, WRONG))
@pytest.mark.parametrize("detector", DETECTORS, ids=NAMES)
def test_forged_bytes_are_refused_and_nothing_else(detector, wrong):
    """With a checksum that fits: every value is checked against its range and the others."""
    watch = unpack(saved_watch(DETECTORS.index(detector)))
    found = unpack(watch.sections["0segments"])
    with pytest.raises(io.InputError):
        fr.Watch.from_bytes(with_streams(watch, {**found.about, **wrong}, found.sections))


@pytest.mark.parametrize("wrong", WRONG_WATCH, ids=map(str, WRONG_WATCH))
def test_a_forged_watch_is_refused(wrong):
    watch = unpack(saved_watch(0))
    with pytest.raises(io.InputError):
        fr.Watch.from_bytes(pack("Watch", {**watch.about, **wrong}, **watch.sections))


def test_sections_that_do_not_belong_together_are_refused():
    watches = [unpack(taken(fr.Watch(one), frame(3000))[0].to_bytes()) for one in DETECTORS[1::-1]]
    alone = fr.Watch(fr.FourRates())
    alone.update({"y_true": [1, 0], "y_pred": [1, 1]})
    watches.append(unpack(alone.to_bytes()))
    lfr, four, one = (unpack(watch.sections["0segments"]) for watch in watches)
    for about, sections in (
        (lfr.about, {**lfr.sections, "bank": four.sections["bank"]}),
        (lfr.about, {**lfr.sections, "start": four.sections["start"]}),
        (lfr.about, {"bank": lfr.sections["bank"]}),
        (lfr.about, {"start": lfr.sections["start"]}),
        (lfr.about, {**lfr.sections, "bank": b"nothing"}),
        (one.about, {**one.sections, "stream0": b"nothing"}),
        (one.about, {name: part for name, part in one.sections.items() if name != "stream0"}),
    ):
        with pytest.raises(io.InputError):
            fr.Watch.from_bytes(with_streams(watches[2 if about is one.about else 0], about, sections))
    with pytest.raises(io.InputError, match="not of Watch"):
        fr.Watch.from_bytes(fr.LFR().to_bytes())


@pytest.mark.slow
def test_a_key_takes_little_more_than_its_record():
    streams = 20_000
    keys = np.arange(3 * streams) % streams
    random = np.random.default_rng(0)
    truth, pred = random.integers(0, 2, (2, keys.size)).astype(np.uint16)
    names = [f"customer-{k}" for k in range(streams)]
    batch = io.Batch(truth, pred, "x", np.arange(keys.size), None, keys)
    tracemalloc.start()
    watch = fr.Watch(fr.FourRates())
    watch.update(batch, names)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size / streams < fr.FourRates().rules.size + 1200


# Times ------------------------------------------------------------------------------------------------------


def fallen(segments, size=40_000, seed=5):
    """Events a minute apart; the tpr of one segment falls at event 20,000."""
    random = np.random.default_rng(seed)
    truth = (random.random(size) < 0.3).astype(int)
    model = np.array([f"m{k}" for k in range(segments)])[random.integers(0, segments, size)]
    away = (np.arange(size) > size // 2) & (model == "m0") & (truth == 1)
    pred = truth ^ (random.random(size) < np.where(away, 0.5, 0.1))
    times = np.datetime64("2026-01-01", "us") + np.arange(size) * np.timedelta64(60_000_000, "us")
    return {"model": model, "y_true": truth, "y_pred": pred.astype(int), "time": times}


def watched(data, cuts, by):
    watch, found = fr.Watch(fr.FourRates(100_000), by=by), []
    for start, end in pairwise([0, *cuts, len(data["time"])]):
        found += watch.update({name: column[start:end] for name, column in data.items()})
        columns, watch = watch._columns, fr.Watch.from_bytes(watch.to_bytes())
        watch._columns = columns
    return watch, found


@pytest.mark.parametrize(("segments", "by"), [(1, None), (4, "model")])
def test_times_are_known_wherever_the_input_was_cut(segments, by):
    data = fallen(segments)
    whole_watch, whole = watched(data, [], by)
    drift = next(finding for finding in whole if finding.kind == "drift")
    own = np.flatnonzero(data["model"] == "m0")
    assert drift.time == data["time"][own[drift.at]]
    late = (data["time"][own[drift.at]] - data["time"][own[drift.started]]) / 8
    assert abs(drift.started_time - data["time"][own[drift.started]]) <= max(late, np.timedelta64(8 * segments, "m"))
    random = np.random.default_rng(6)
    for _ in range(6):
        cuts = sorted(random.integers(1, 40_000, 9).tolist())
        watch, found = watched(data, cuts, by)
        assert without_rows(found) == without_rows(whole), cuts
        assert str(watch.now()) == str(whole_watch.now())
        assert watch.now().open[0].drift.started_time == drift.started_time


def test_every_finding_knows_the_time_of_the_drift_it_is_about():
    data = fallen(1)
    _, found = watched(data, range(1_000, 40_000, 1_000), None)
    drift, confirmation = found[:2]
    assert (drift.kind, confirmation.kind) == ("drift", "confirmation")
    assert confirmation.drift.time == drift.time == data["time"][drift.at]
    assert confirmation.drift.started_time == drift.started_time


def joined(segments, size=24_000, seed=5):
    """Events a minute apart; in one segment tnr falls a little at event 10,000, and tpr a lot at 20,000."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, size)
    model = np.array([f"m{k}" for k in range(segments)])[random.integers(0, segments, size)]
    fallen = np.where(truth == 1, 0.6 * (np.arange(size) >= 20_000), 0.15 * (np.arange(size) >= 10_000))
    pred = truth ^ (random.random(size) < np.where(model == "m0", 0.1 + fallen, 0.1))
    times = np.datetime64("2026-01-01", "us") + np.arange(size) * np.timedelta64(60_000_000, "us")
    return {"model": model, "y_true": truth, "y_pred": pred, "time": times}


@pytest.mark.parametrize(("segments", "by"), [(1, None), (3, "model")])
def test_a_drift_that_a_rate_joined_later_is_dated_by_the_rate_it_leads_with(segments, by):
    data = joined(segments)
    for cuts in ([], range(1_000, 24_000, 1_000)):
        watch, found = watched(data, cuts, by)
        first, second = (one for one in found if one.kind == "drift" and not one.further)
        assert [first.changes[0].rate, second.changes[0].rate] == ["tnr", "tpr"]
        (opened,) = watch.now().open
        assert [*opened.worst_first] == ["tpr", "tnr"]
        assert opened.drift.at == first.at
        since = opened.leading
        assert (since.at, since.started, since.started_time) == (second.at, second.started, second.started_time)
        assert (since.row, since.started_row) == (second.row, second.started_row)
        assert abs(since.started_time - data["time"][20_000]) < np.timedelta64(3, "h")
        assert "since about 2026-01-14 2" in str(watch.now())  # 20,000 minutes later it is 21:20
        now = watch.now().to_json()["open"][0]["now"]
        assert now["tnr"]["started"] == first.started
        assert now["tpr"]["started"] == second.started


def test_a_rate_that_joined_says_which_way_it_moved_before_it_is_known():
    data = joined(1)
    _, found = watched(data, [], None)
    *_, second = (one for one in found if one.kind == "drift")
    watch, _ = watched({name: column[: second.at + 80] for name, column in data.items()}, [], None)
    assert watch.now().open[0].rates["tpr"].now.n < watch.now().open[0].rates["tpr"].enough
    assert "tpr fell to between 0." in str(watch.now())


# Now --------------------------------------------------------------------------------------------------------


def test_now_is_the_count_over_the_rows_since_the_alarm():
    data = fallen(5)
    watch, found = watched(data, [10_000, 30_000], "model")
    drift = next(finding for finding in found if finding.kind == "drift")
    own = np.flatnonzero(data["model"] == "m0")[drift.at + 1 :]
    positives = data["y_true"][own] == 1
    right = (data["y_pred"][own] == 1)[positives]
    (opened,) = watch.now().open
    assert (opened.segment, opened.confirmed) == ("m0", True)
    now = opened.rates["tpr"].now
    assert (now.n, round(now.value * now.n)) == (positives.sum(), right.sum())
    assert f"tpr {right.mean():.3f}" in str(opened)
    assert watch.now().to_json()["open"][0]["now"]["tpr"]["now"]["n"] == positives.sum()


def test_what_is_accepted_is_normal_and_closed():
    watch, _ = watched(fallen(4), [], "model")
    finding = watch.accept("m0")
    assert (finding.kind, finding.segment, finding.drift.segment) == ("acceptance", "m0", "m0")
    assert (watch.now().status, watch.accept("m0")) == ("stable", None)
    with pytest.raises(KeyError):
        watch.accept("nobody")


@pytest.mark.parametrize("by", [None, "model"])
def test_a_new_budget_forgets_nothing(by):
    watch, _ = watched(fallen(4), [], by)
    before = watch.now()
    watch.set_budget(1_000_000)
    after = watch.now()
    assert watch.detector.parameters["arl"] == 1_000_000
    assert str(after) == str(before)
    assert watch.segments[None if by is None else "m0"].events > 0


# Overall and segments ---------------------------------------------------------------------------------------


def test_the_overall_stream_beside_segments_is_one_watch_with_the_findings_of_both():
    data = fallen(4)
    detector = fr.FourRates(arl=20_000)
    both = fr.Watch(detector, by="model", overall=detector)
    alone, segments = fr.Watch(detector), fr.Watch(detector, by="model")
    found, wanted = [], []
    for start in range(0, len(data["y_true"]), 7_000):
        batch = {name: column[start : start + 7_000] for name, column in data.items()}
        found += both.update(batch)
        wanted += alone.update({name: batch[name] for name in ("y_true", "y_pred", "time")}) + segments.update(batch)
        saved = fr.Watch.from_bytes(both.to_bytes())
        assert saved.now() == both.now()
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    assert both.open_since == alone.open_since | segments.open_since
    assert both.now().rates == alone.now().rates
    assert "of 4 segments drifted" in str(both.now())
    assert both.accept().segment is None
    assert {*both.open_since} == {*segments.open_since}


def test_a_batch_with_too_many_segments_changes_nothing():
    watch = fr.Watch(fr.FourRates(), by="k", max_segments=2)
    watch.update({"y_true": [0, 1], "y_pred": [0, 1], "k": ["a", "b"]})
    before = watch.to_bytes()
    with pytest.raises(io.InputError, match="more than 2 segments"):
        watch.update({"y_true": [0, 1, 1], "y_pred": [0, 1, 1], "k": ["a", "c", "d"]})
    assert watch.to_bytes() == before


def test_a_name_full_of_brackets_can_be_saved():
    watch = fr.Watch(fr.FourRates(), by="k")
    watch.update({"y_true": [0, 1], "y_pred": [0, 1], "k": ['["\\' * 40, "b"]})
    assert [*fr.Watch.from_bytes(watch.to_bytes()).segments] == [*watch.segments]
