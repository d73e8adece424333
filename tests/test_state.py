"""What is saved: its form, what is refused, and that no bytes make a kernel misbehave."""

import struct
import sys
import zlib

import numpy as np
import pytest

import fourrates as fr
from fourrates import state
from fourrates.evidence.alternatives import alternatives
from fourrates.evidence.rules import LAG, LAG_OF_MANY


def mended(body):
    """The bytes with a checksum that fits."""
    return bytes(body) + struct.pack("<I", zlib.crc32(body))


def written(text, *parts):
    """A state with any JSON text."""
    return mended(state.HEADER.pack(state.MAGIC, state.VERSION, len(text)) + text + b"".join(parts))


# The codec ------------------------------------------------------------------------------------------------------


def test_what_is_packed_is_unpacked():
    saved = state.pack("Thing", {"a": [1, "é", None]}, first=b"abc", second=memoryview(b""), third=bytes(1000))
    found = state.unpack(saved)
    assert (found.kind, found.about) == ("Thing", {"a": [1, "é", None]})
    assert {name: bytes(part) for name, part in found.sections.items()} == {
        "first": b"abc",
        "second": b"",
        "third": bytes(1000),
    }


def test_a_memoryview_is_read_as_the_bytes_it_shows():
    saved = fr.FourRates().to_bytes()
    assert state.unpack(memoryview(saved)) == state.unpack(saved)


def test_every_changed_byte_and_every_cut_is_noticed():
    saved = fr.FourRates(1_000).to_bytes()
    for place in range(len(saved)):
        changed = bytearray(saved)
        changed[place] ^= 0x40
        with pytest.raises(ValueError, match=r"saved by fourrates|version|checksum"):
            state.unpack(bytes(changed))
        with pytest.raises(ValueError, match=r"saved by fourrates|checksum"):
            state.unpack(saved[:place])


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (b"", "not a state saved by fourrates"),
        (b"key,y_true\n" * 9, "not a state saved by fourrates"),
        (mended(state.HEADER.pack(state.MAGIC, state.VERSION + 1, 0)), f"this release reads version {state.VERSION}"),
        (mended(state.HEADER.pack(state.MAGIC, state.VERSION - 1, 0)), f"this release reads version {state.VERSION}"),
        (mended(state.HEADER.pack(state.MAGIC, state.VERSION, 99)), "is cut"),
        (mended(state.HEADER.pack(state.MAGIC, state.VERSION, 2**32 - 1)), "is cut"),
        (written(b"{}"), "has no kind"),
        (written(b'{"kind":1,"about":{},"sections":[]}'), "has no kind"),
        (written(b'{"kind":"LFR","about":[],"sections":[]}'), "has no kind"),
        (written(b'{"kind"'), "cannot be read"),
        (written(b"\xff\xfe"), "cannot be read"),
        (written(b"1" * 5000), "cannot be read"),
        (written(b"[" * 100_000), "brackets 100000 deep"),
        (written(b'{"kind":"A","about":{},"sections":[["a",4]]}', b"abc"), r"section \['a', 4\] that does not fit"),
        (written(b'{"kind":"A","about":{},"sections":[["a",-1]]}', b"abc"), r"section \['a', -1\] that does not fit"),
        (written(b'{"kind":"A","about":{},"sections":[["a",1],["a",1]]}', b"ab"), "does not fit"),
        (written(b'{"kind":"A","about":{},"sections":[["a"]]}', b"ab"), "does not fit"),
        (written(b'{"kind":"A","about":{},"sections":[["a",1.0]]}', b"a"), "does not fit"),
        (written(b'{"kind":"A","about":{},"sections":[["a",1e999]]}', b"a"), "does not fit"),
        (written(b'{"kind":"A","about":{},"sections":[]}', b"abc"), "has 3 bytes after its end"),
    ],
)
def test_a_form_that_is_none_is_refused_with_what_is_wrong(saved, message):
    with pytest.raises(ValueError, match=message):
        state.unpack(saved)


@pytest.mark.parametrize(
    ("kind", "about", "sections", "message"),
    [
        ("LFR", {}, {"state": bytes(200)}, "this is the state of LFR, not of FourRates"),
        ("FourRates", {}, {"state": bytes(200)}, "no labels"),
        ("FourRates", {"labels": [0, 1]}, {}, "other sections than a detector's"),
        ("FourRates", {"labels": [0, 1]}, {"state": b"", "more": b""}, "other sections than a detector's"),
        ("FourRates", {"labels": list(range(4000))}, {"state": bytes(1000)}, "too short for its parameters"),
        ("FourRates", {"labels": [0, [1]]}, {"state": bytes(1000)}, "parameters that no FourRates has"),
        ("FourRates", {"labels": [0, 1], "arl": 1e300}, {"state": bytes(1000)}, "parameters that no FourRates has"),
        ("FourRates", {"labels": [0, 1], "speed": 3}, {"state": bytes(1000)}, "parameters that no FourRates has"),
        (
            "FourRates",
            {"labels": [0, 1], "reference": {"a": 1}},
            {"state": bytes(1000)},
            "parameters that no FourRates",
        ),
        ("FourRates", {"labels": [0, 1], "arl": 1000}, {"state": bytes(100)}, "a record of 100 bytes where"),
    ],
)
def test_parameters_that_no_detector_has_are_refused(kind, about, sections, message):
    with pytest.raises(ValueError, match=message):
        fr.FourRates.from_bytes(state.pack(kind, about, **sections))


@pytest.mark.parametrize("history", [10**7, 10**12, 10**30])
def test_a_long_history_is_not_made_for_a_short_state(history):
    saved = state.unpack(fr.baselines.ThreeMeasures().to_bytes())
    forged = state.pack(saved.kind, saved.about | {"history": history}, **saved.sections)
    with pytest.raises(ValueError, match="of 488 bytes is too short for its parameters"):
        fr.baselines.ThreeMeasures.from_bytes(forged)


# Bytes from anywhere --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "count"), [("records", 2_000), ("files", 1_500), ("banks", 500), ("watches", 1_000)]
)
def test_changed_bytes_are_refused_or_run_and_nothing_else_happens(benchmark, source, count):
    # A sample; `make fuzz` tries a million.
    resource = pytest.importorskip("resource", reason="no way to ask for the memory used")
    fuzz_states = benchmark("fuzz_states")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes, wrong = fuzz_states.fuzz(getattr(fuzz_states, source)(np.random.default_rng(7)), count)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kB, or bytes on macOS
    assert wrong == {}
    assert outcomes["refused"] > count / 2
    assert outcomes["ran"] > count / 50
    assert grown < 300e3 * (1024 if sys.platform == "darwin" else 1)


@pytest.mark.slow
def test_no_state_that_a_detector_saved_is_refused(benchmark):
    fuzz_states = benchmark("fuzz_states")
    outcomes, wrong = fuzz_states.fuzz(fuzz_states.own(np.random.default_rng(7)), 600)
    assert (outcomes, wrong) == ({"ran": 600}, {})


@pytest.mark.slow
def test_evidence_that_faded_away_is_no_reason_to_refuse_a_state():
    # Where the classifier is good nothing looks for an improvement: what evidence there was is multiplied by less
    # than 1 ever after, to below the smallest float, which its age, a larger number, would get to later.
    random = np.random.default_rng(5)
    detector, faded = fr.FourRates(200, dispersion=1.5, mix="ignore"), 0
    for _ in range(400):
        truth = random.integers(0, 2, 8)
        detector.update_many(truth, np.where(random.random(8) < 0.85, truth, 1 - truth))
        recall = np.frombuffer(detector.record_bytes, detector.rules.layout)[0]["recall"]
        some = (recall["n"] > 100) & (recall["ones"] < recall["n"])
        faded += bool((recall["evidence"][some] == 0).any())
        assert fr.FourRates.from_bytes(detector.to_bytes()).record_bytes == detector.record_bytes
    assert faded > 0


@pytest.mark.slow
@pytest.mark.parametrize("until", [325, 475, 500, 725])
def test_evidence_that_faded_away_takes_with_it_all_that_belongs_to_it(until):
    # One in 60 is wrong, then none is. Nothing looks for an improvement at such a rate, so the evidence of it has faded
    # to below the smallest float; what was left of its age grew by itself from then on.
    detector, faded = fr.FourRates(1_000, labels=range(3), dispersion=1.0), 0
    for i in range(until + 150):
        place = np.arange(20 * i, 20 * (i + 1)).repeat(3)
        truth = np.tile([0, 1, 2], 20)
        detector.update_many(truth, np.where((place % 60 == 0) & (i < until), (truth + 1) % 3, truth))
        recall = np.frombuffer(detector.record_bytes, detector.rules.layout)[0]["recall"]
        gone = recall["evidence"] == 0
        faded += bool(gone[recall["n"] > 1_000].any())
        assert not any(recall[name][gone].any() for name in ("age", "n_since", "correct_since"))
        assert fr.FourRates.from_bytes(detector.to_bytes()).record_bytes == detector.record_bytes
    assert faded > 0


@pytest.mark.parametrize("sides", ["both", "down", "up"])
@pytest.mark.parametrize("classes", [2, 3, 50])
@pytest.mark.parametrize("arl", [200.0, 5e4, 1e9])
def test_where_evidence_only_fades_the_first_lane_of_a_direction_has_no_weight(classes, arl, sides):
    # By this the kernel knows which events need a bound: it looks at no other lane, and at none of several recalls.
    weights = alternatives(classes, arl, LAG if classes == 2 else LAG_OF_MANY, sides)[:, :, :, 2]
    fades = (weights[:, :, 0, 0] == 0) | (weights[:, :, 0, 6] == 0)
    assert fades[((weights == 0) & (weights > 0).any((0, 1))).any((2, 3))].all()


@pytest.mark.parametrize("name", ["age", "n_since", "correct_since"])
def test_what_is_let_in_stays_in(name):
    # As much as the check allows, for evidence that is there and for such as is not, at rates where nothing looks for
    # an improvement; then all are right.
    reference = (np.full((5, 5), 10) + np.eye(5, dtype=int) * 400).tolist()
    detector = fr.FourRates(200, labels=range(5), reference=reference)
    detector.update_many(np.arange(170) % 5, np.where(np.arange(170) % 23, np.arange(170), np.arange(170) + 1) % 5)
    record = np.frombuffer(bytearray(detector.record_bytes), detector.rules.layout)
    recall = record[0]["recall"]
    assert (recall["evidence"][:, 6:] == 0).all()
    if name == "correct_since":
        recall[name] = (1 - 1e-6) * (1.01 * recall["n_since"] + 1e-37)
    else:
        most = recall["last" if name == "age" else "n"][:, None]
        recall[name] = (1 - 1e-6) * 1.01 * most * (recall["evidence"] + 1e-37)
    detector.restore(record.tobytes())
    for _ in range(40):
        detector.update_many(np.arange(25) % 5, np.arange(25) % 5)
        assert fr.FourRates.from_bytes(detector.to_bytes()).record_bytes == detector.record_bytes


@pytest.mark.parametrize("right", [0, 1])
def test_blocks_as_full_as_they_can_be_never_overflow(right):
    # Counts of right ones have two bytes. Here they are as large as the check allows, and the stream goes on.
    detector = fr.FourRates(1e9, mix="report")
    detector.update_many([0, 1, 1] * 3_000, [0, 1, 0] * 3_000)
    record = np.frombuffer(bytearray(detector.record_bytes), detector.rules.layout)[0]
    level = np.arange(10)
    counted = [*((one, int(one["phase"])) for one in record["recall"]), (record["mix"], 9_000)]
    for part, observed in counted:
        first = part["dispersion"]["first"]
        first[:] = (observed // 8 >> level & 1) * 4 * (8 << level)  # in quarters; the second is to come
        part["block"] = observed % 8
        detector.restore(record.tobytes())
        first[np.flatnonzero(first)[-1]] += 4
        with pytest.raises(ValueError, match="blocks of no stream"):
            detector.restore(record.tobytes())
        first[np.flatnonzero(first)[-1]] -= 4
    for _ in range(25):
        detector.update_many([1] * 701, [right] * 701)
        assert fr.FourRates.from_bytes(detector.to_bytes()).record_bytes == detector.record_bytes


@pytest.mark.slow
def test_a_recall_that_moved_to_nearly_one_is_saved_and_may_be_back():
    # Of 20 million right ones in a row the rate is 1 as a float of four bytes, and 1 less that is nothing to divide by.
    detector = fr.FourRates(1e9, reference=[[900, 100], [50, 950]], after="hold", mix="ignore", dispersion=1.0)
    detector.update_many([0, 1] * 5_000, [0, 1] * 5_000)
    record = np.frombuffer(detector.record_bytes, detector.rules.layout)[0]
    assert record["recall"]["moved"][0] == 1
    right = np.tile(np.array([0] * 19 + [1], np.uint16), 100_000)
    wrong = np.where(np.arange(right.size) % 400 == 19, 0, right)  # of the other class, one in 20
    for _ in range(11):
        detector.update_many(right, wrong)
    record = np.frombuffer(detector.record_bytes, detector.rules.layout)[0]
    assert (record["recall"]["moved"][0], record["recall"]["base"][0]) == (1, 1.0)
    assert fr.FourRates.from_bytes(detector.to_bytes()).record_bytes == detector.record_bytes
    detector.update(0, 1)
    back = np.frombuffer(detector.record_bytes, detector.rules.layout)[0]["look"]["back"][0]
    assert 0 < back < np.inf
    assert fr.FourRates.from_bytes(detector.to_bytes()).record_bytes == detector.record_bytes


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (("counts", (0, 0)), 10**6, "counts that do not fit"),
        (("shared", "taken"), 10**6, "counts that do not fit"),
        (("shared", "own"), 50.0, "does not add up"),
        (("shared", "own"), -1e30, "does not add up"),
        (("shared", "total"), 1e3, "does not add up"),
        (("shared", "evidence", 3), np.nan, "evidence is not finite"),
        (("shared", "age", 3), 1e30, "older than the stream"),
        (("recall", 1, "n"), -1, "observations that do not fit"),
        (("recall", 1, "ones"), 10**6, "observations that do not fit"),
        (("recall", 1, "last"), 2**31, "an observation after the last event"),
        (("recall", 1, "moved"), 1, "a look at no drift"),
        (("recall", 1, "moved"), 2, "moved neither up nor down"),
        (("look", 1, "given"), 250.5, "a reference that holds no counts"),
        (("look", 1, "ones"), np.nan, "a reference that holds no counts"),
        (("recent", 1, "n"), 501, "latest observations that cannot be"),
        (("recent", 3, "last_ones"), 7, "latest observations that cannot be"),
        (("recall", 1, "next_refresh_n"), 1e9, "never will be"),
        (("recall", 1, "base"), 1.5, r"base is not in \[0, 1\]"),
        (("recall", 1, "power", 0), -0.5, r"power is not in \[0, 1\]"),
        (("recall", 1, "row"), 65, "a rate that is in no row"),
        (("recall", 1, "phase"), 8192, "blocks of no stream"),
        (("recall", 1, "block"), 1, "blocks of no stream"),  # after 200 observations, 25 blocks of 8
        (("recall", 1, "dispersion", "first", 0), 36, "blocks of no stream"),  # 9 right ones in 8
        (("recall", 1, "dispersion", "first", 1), 4, "blocks of no stream"),  # no block of 16 waits for another
        (("recall", 1, "dispersion", "first", 3), -4, "blocks of no stream"),
        (("recall", 1, "dispersion", "first", 3), 7, "blocks of no stream"),  # not whole right ones
        (("recall", 1, "dispersion", "first", 9), 32_767, "blocks of no stream"),
        (("shared", "block"), 3.0, "blocks of no stream"),
        (("shared", "residual"), 9.0, "blocks of no stream"),
        (("shared", "variance"), 0.26, "blocks of no stream"),
        (("shared", "dispersion", "first", 9), -4, "blocks of no stream"),
        (("mix", "block"), 1, "blocks of no stream"),
        (("mix", "dispersion", "first", 0), 3, "blocks of no stream"),
        (("recall", 1, "n_since", 0), 1e30, "more observations since a change than there were"),
        (("look", 1, "back"), 1e9, "a look at no drift"),
        (("look", 1, "back_age"), np.nan, "a look at no drift"),
        (("look", 1, "condition"), 1, "a look at no drift"),
        (("look", 1, "opened"), 1, "an episode of no drift"),
        (("episode", "at"), 7, "an episode of no drift"),
        (("episode", "mixed", (0, 0)), 0.5, "an episode of no drift"),
        (("change", (1, 0, 3)), 7.0, "an episode of no drift"),
        (("confusion", (0, 0)), 1, "an episode of no drift"),
        (("joint", "shares", (0, 3)), 5.0, "an episode of no drift"),
        (("recall", 1, "dispersion", "squares", 0), 1e35, "dispersion of no stream"),
        (("mix", "n"), 10**6, "a mix that does not fit"),
        (("mix", "evidence", 0), 1e30, "evidence beyond the alarm"),
        (("joint", "evidence", 0), 1e30, "evidence beyond the alarm"),
        (("joint", "evidence", 3), 1e-3, "evidence for a lane that is not watched"),
        (("joint", "age", 6), 1e30, "older than the stream"),
        (("joint", "total"), np.nan, "total is not finite"),
        (("joint", "total"), 1e3, "does not add up"),
        (("head", "events"), 3 << 6, "counts that do not fit"),
        (("head", "since"), 10**6 << 16, "a warning since event"),
        (("head", "events"), (400 << 6) + 16, "flags that contradict each other"),
    ],
)
def test_a_number_that_does_not_fit_the_others_is_refused(field, value, message):
    settings = {"look": {"reference": [[100, 100], [2, 198]]}, "joint": {"mix": "alarm"}}.get(field[0], {})
    detector = fr.FourRates(10_000, **settings)
    detector.update_many([0, 1] * 200, [0, 1, 1, 1] * 100)
    record = np.frombuffer(bytearray(detector.record_bytes), detector.rules.layout)
    part = record[0]
    for name in field[:-1]:
        part = part[name]
    part[field[-1]] = value
    before = detector.record_bytes
    with pytest.raises(ValueError, match=message):
        detector.restore(record.tobytes())
    assert detector.record_bytes == before


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (("look", 1, "condition"), 0, "a look at no drift"),
        (("look", 1, "condition"), 4, "a look at no drift"),
        (("look", 0, "condition"), 2, "a look at no drift"),
        (("look", 1, "direction"), 200, "a look at no drift"),
        (("look", 1, "settled"), 2, "a look at no drift"),
        (("look", 1, "normal_n"), 10**9, "a look at no drift"),
        (("look", 1, "normal_n"), -5, "a look at no drift"),
        (("look", 1, "normal_ones"), 10**6, "a look at no drift"),
        (("look", 1, "away_ones"), 5, "a look at no drift"),
        (("look", 1, "weight", 0), 5.0, "a look at no drift"),
        (("look", 1, "weight", 0), np.nan, "a look at no drift"),
        (("look", 1, "back"), np.nan, "a look at no drift"),
        (("recall", 1, "moved"), 0, "a look at no drift"),
        (("head", "events"), 32, "an episode of no drift"),  # the flag that says a drift is open
        (("episode", "at"), 0, "an episode of no drift"),
        (("episode", "at"), 10**6, "an episode of no drift"),
        (("episode", "started"), 2**31, "an episode of no drift"),
        (("episode", "since"), 2**31, "an episode of no drift"),
        (("episode", "evidence"), np.inf, "an episode of no drift"),
        (("episode", "known"), 0.5, "an episode of no drift"),
        (("episode", "mixed", (1, 2)), 1.5, "an episode of no drift"),
        (("confusion", (0, 0)), -1, "an episode of no drift"),
        (("change", (1, 1, 0)), 2.0, "an episode of no drift"),
        (("change", (1, 1, 3)), np.nan, "an episode of no drift"),
    ],
)
def test_an_open_drift_that_cannot_be_one_is_refused(field, value, message):
    detector = fr.FourRates(1_000, reference=[[900, 100], [100, 900]])
    detector.update_many([0, 1] * 200, ([0] * 18 + [1, 0]) * 20)
    assert [detector.rates[rate].state for rate in ("tnr", "tpr")] == ["normal", "confirmed"]
    record = np.frombuffer(bytearray(detector.record_bytes), detector.rules.layout)
    part = record[0]
    for name in field[:-1]:
        part = part[name]
    part[field[-1]] = part[field[-1]] ^ np.uint64(value) if field[0] == "head" else value
    before = detector.record_bytes
    with pytest.raises(ValueError, match=message):
        detector.restore(record.tobytes())
    assert detector.record_bytes == before


def test_where_dispersion_is_given_no_block_is_ever_begun():
    detector = fr.FourRates(1_000, dispersion=1.5)
    detector.update_many([0, 1] * 200, [0, 1, 1, 1] * 100)
    record = np.frombuffer(bytearray(detector.record_bytes), detector.rules.layout)
    record[0]["shared"]["residual"] = 1e-4
    with pytest.raises(ValueError, match="blocks of no stream"):
        detector.restore(record.tobytes())


@pytest.mark.parametrize("name", ["evidence", "age", "n_since", "correct_since"])
def test_what_is_not_watched_has_left_nothing_however_little(name):
    detector = fr.FourRates(1_000, sides="down")
    detector.update_many([0, 1] * 200, [0, 1, 1, 1] * 100)
    record = np.frombuffer(bytearray(detector.record_bytes), detector.rules.layout)
    record[0]["recall"][1][name][8] = 1e-44
    with pytest.raises(ValueError, match="evidence for a lane that is not watched"):
        detector.restore(record.tobytes())


def test_a_power_of_zero_is_refused_as_evidence_would_be_nothing_over_nothing():
    detector = fr.FourRates(1_000, labels=range(3))
    detector.update_many([0, 1, 2] * 200, [0, 1, 2, 1, 2, 2] * 100)
    record = np.frombuffer(bytearray(detector.record_bytes), detector.rules.layout)
    record[0]["recall"][1]["power"][3] = 0
    with pytest.raises(ValueError, match="power is 0"):
        detector.restore(record.tobytes())
