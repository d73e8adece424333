"""Predictions and late labels by id, held against a model made of dictionaries."""

import copy
import math
import pickle
import struct
import threading
import zlib
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fourrates as fr


class Model:
    """The same, plainly: dictionaries keep the order in which things came."""

    def __init__(self, max_waiting, max_wait, max_remembered):
        self.max_waiting, self.max_remembered = max_waiting, max_remembered
        self.max_wait = math.inf if max_wait is None else max_wait
        self.predictions, self.labels, self.done = {}, {}, {}
        self.clock = self.began = None
        self.counts = Counter()

    def expire(self, now):
        if now is None or (self.clock is not None and now <= self.clock):
            return
        self.began = now if self.began is None else self.began
        self.clock = now

        def over(log):
            """The oldest stand first, so the first that may stay ends it."""
            found = []
            for one, (since, *_) in log.items():
                if self.clock - (self.began if since is None else since) <= self.max_wait:
                    break
                found.append(one)
            return found

        for one in over(self.done):
            del self.done[one]
        for one in over(self.labels):
            del self.labels[one]
            self.counts["unmatched"] += 1
        for one in over(self.predictions):
            self.miss(one, "expired")

    def miss(self, one, why):
        del self.predictions[one]
        self.counts[why] += 1
        self.remember(one, "missed")

    def remember(self, one, how):
        self.done[one] = self.clock, how
        if len(self.done) > self.max_remembered:
            del self.done[next(iter(self.done))]

    def pair(self, one, truth, pred, tag):
        self.counts["pairs"] += 1
        self.remember(one, "paired")
        return truth, pred, tag

    def predict(self, one, pred, time, tag):
        self.expire(time)
        if one in self.labels:
            return self.pair(one, self.labels.pop(one)[1], pred, tag)
        if one in self.predictions or one in self.done:
            self.counts["repeated_predictions"] += 1
            return None
        self.predictions[one] = self.clock, pred, tag
        if len(self.predictions) > self.max_waiting:
            self.miss(next(iter(self.predictions)), "displaced")
        return None

    def label(self, one, truth, time):
        self.expire(time)
        if one in self.predictions:
            _, pred, tag = self.predictions.pop(one)
            return self.pair(one, truth, pred, tag)
        if one in self.done and self.done[one][1] == "missed":
            self.done[one] = self.done[one][0], "paired"
            self.counts["late_labels"] += 1
        elif one in self.labels or one in self.done:
            self.counts["repeated_labels"] += 1
        else:
            self.labels[one] = self.clock, truth
            if len(self.labels) > self.max_waiting:
                del self.labels[next(iter(self.labels))]
                self.counts["unmatched"] += 1
        return None

    def all_counts(self):
        return {**self.counts, "waiting": len(self.predictions), "waiting_labels": len(self.labels)}


def agree(join, model):
    assert {name: count for name, count in join.counts.items() if count} == {
        name: count for name, count in model.all_counts().items() if count
    }
    assert join.remembered == len(model.done)


ITEM = st.tuples(
    st.booleans(),
    st.integers(0, 30),
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(0, 100)),
    st.integers(-(2**63), 2**63 - 1),
)
BATCH = st.tuples(st.lists(ITEM, max_size=20), st.sampled_from(["go on", "bytes", "pickle", "copy", "expire"]))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    batches=st.lists(BATCH, max_size=12),
    max_waiting=st.integers(1, 12),
    max_wait=st.one_of(st.none(), st.integers(0, 30)),
    max_remembered=st.integers(0, 12),
    seed=st.integers(0, 2**128 - 1),
)
def test_any_interleaving_gives_what_dictionaries_give(batches, max_waiting, max_wait, max_remembered, seed):
    join = fr.LabelJoin(["a", "b", "c"], None, max_waiting, max_wait, max_remembered=max_remembered, seed=seed)
    model = Model(max_waiting, max_wait, max_remembered)
    for items, then in batches:
        expected = []
        for position, (is_label, one, code, time, tag) in enumerate(items):
            found = model.label(one, code, time) if is_label else model.predict(one, code, time, tag)
            if found is not None:
                expected.append((*found, position))
        times = [math.nan if time is None else time for _, _, _, time, _ in items]
        pairs = join.replay(
            [one for _, one, *_ in items],
            ["abc"[code] for _, _, code, *_ in items],
            np.array([is_label for is_label, *_ in items], bool),
            times,
            np.array([tag for *_, tag in items], np.int64),
        )
        columns = (pairs.truths, pairs.preds, pairs.tags, pairs.positions)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
        if then == "bytes":
            join = fr.LabelJoin.from_bytes(join.to_bytes())
        elif then == "pickle":
            join = pickle.loads(pickle.dumps(join))
        elif then == "copy":
            join = copy.copy(join)
        elif then == "expire":
            now = 0 if model.clock is None else model.clock + 5
            before = model.counts["expired"]
            model.expire(now)
            assert join.expire(now) == model.counts["expired"] - before
        agree(join, model)


@pytest.mark.slow
@pytest.mark.parametrize("max_remembered", [0, 2_000, 1_000_000])
def test_a_long_run_agrees_with_dictionaries(max_remembered):
    random = np.random.default_rng(5)
    join = fr.LabelJoin(max_waiting=6_000, max_wait=18_000, max_remembered=max_remembered)
    model = Model(6_000, 18_000, max_remembered)
    for start in range(0, 60_000, 10_000):
        ids = np.where(
            random.random(10_000) < 0.9, random.integers(0, start + 10_000, 10_000), random.integers(0, 10**5, 10_000)
        )
        is_label, y = random.random(10_000) < 0.5, random.integers(0, 2, 10_000)
        pairs = join.replay(ids, y, is_label, np.arange(start, start + 10_000))
        expected = [
            found
            for i, (one, code, late) in enumerate(zip(ids.tolist(), y.tolist(), is_label.tolist(), strict=True))
            if (found := model.label(one, code, start + i) if late else model.predict(one, code, start + i, 0))
        ]
        assert [pair[:2] for pair in expected] == list(pairs)
        agree(join, model)
    assert min(model.counts["displaced"] + model.counts["expired"], model.counts["unmatched"]) > 1_000
    again = fr.LabelJoin.from_bytes(join.to_bytes())
    assert again.to_bytes() == join.to_bytes()


@pytest.mark.parametrize("max_remembered", [0, 300, None])
def test_predictions_with_their_labels_are_one_after_the_other_in_one_step(max_remembered):
    random = np.random.default_rng(6)
    one, other = (fr.LabelJoin(max_wait=900, max_remembered=max_remembered, seed=3) for _ in range(2))
    for start in range(0, 4_000, 100):
        ids, times = random.integers(0, 1_500, 100), np.arange(start, start + 100)
        y_true, y_pred, tags = random.integers(0, 2, 100), random.integers(0, 2, 100), random.integers(0, 9, 100)
        side = random.integers(0, 3)
        if side == 0:  # some wait, so that an event meets its own prediction, or its own label, under its id
            found, expected = one.predict(ids, y_pred, times, tags), other.predict(ids, y_pred, times, tags)
        elif side == 1:
            found, expected = one.label(ids, y_true, times), other.label(ids, y_true, times)
        else:
            found = one.both(ids, y_true, y_pred, times, tags)
            twice = np.repeat(np.stack([ids, times, tags]), 2, axis=1)
            y = np.stack([y_pred, y_true], axis=1).ravel()
            expected = other.replay(twice[0], y, np.arange(200) % 2 == 1, twice[1], twice[2])
        assert list(found) == list(expected)
        assert found.tags.tolist() == expected.tags.tolist()
        assert found.positions.tolist() == (expected.positions // (2 if side == 2 else 1)).tolist()
        assert one.to_bytes() == other.to_bytes()
    assert min(one.counts["repeated_predictions"], one.counts["repeated_labels"], one.counts["expired"]) > 10


def test_predictions_with_their_labels_displace_nobody_who_waits():
    join = fr.LabelJoin(max_waiting=1, max_remembered=10)
    join.predict(["a"], [1])
    assert list(join.both(["b", "c", "b"], [1, 0, 0], [0, 0, 0])) == [(1, 0), (0, 0)]
    assert list(join.label(["a"], [0])) == [(0, 1)]
    assert (join.counts["displaced"], join.counts["repeated_predictions"], join.counts["repeated_labels"]) == (0, 1, 1)
    with pytest.raises(ValueError, match="y_true has 1 items, y_pred has 2"):
        join.both(["d", "e"], [1], [0, 0])


def test_labels_in_random_order_find_every_prediction_and_keep_memory_bounded():
    random = np.random.default_rng(1)
    ids, y_pred = random.permutation(500_000), random.integers(0, 2, 500_000)
    join = fr.LabelJoin()
    join.predict(ids, y_pred, tags=ids)
    assert join.nbytes / join.waiting < 100
    largest = 0
    for part in np.array_split(random.permutation(500_000), 50):
        pairs = join.label(ids[part], 1 - y_pred[part])
        assert (pairs.y_pred == y_pred[part]).all()
        assert (pairs.y_true == 1 - y_pred[part]).all()
        assert (pairs.tags == ids[part]).all()
        assert (pairs.positions == np.arange(part.size)).all()
        largest = max(largest, join.nbytes)
    assert join.counts["pairs"] == 500_000
    assert join.waiting == join.waiting_labels == 0
    assert largest / 500_000 < 100


def test_the_key_of_the_fingerprints_changes_nothing_but_them():
    random = np.random.default_rng(2)
    ids, y, late = random.integers(0, 500, 5_000), random.integers(0, 2, 5_000), random.random(5_000) < 0.5
    results = set()
    for seed in (None, None, 0, 7, 2**128 - 1):
        join = fr.LabelJoin(max_waiting=50, max_wait=200, seed=seed)
        pairs = join.replay(ids, y, late, np.arange(5_000))
        results.add((pairs.positions.tobytes(), pairs.truths.tobytes(), repr(join.counts)))
    assert len(results) == 1
    one, other = fr.LabelJoin(seed=1), fr.LabelJoin(seed=2)
    assert (one.fingerprints(ids) != other.fingerprints(ids)).all()
    assert fr.LabelJoin()._key != fr.LabelJoin()._key


# Ids ----------------------------------------------------------------------------------------------------------

NAMES = ["a", "", "id-17", "ä", "日本", "🦊x", "x" * 70, "123"]


def forms_of_text():
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    pd = pytest.importorskip("pandas")
    return {
        "list": NAMES,
        "tuple": tuple(NAMES),
        "U": np.array(NAMES),
        "swapped": np.array(NAMES).astype(np.array(NAMES).dtype.newbyteorder(">")),
        "strided": np.repeat(np.array(NAMES), 2)[::2],
        "object": np.array(NAMES, object),
        "string": pa.array(NAMES),
        "slice": pa.array(["before", *NAMES, "after"])[1:-1],
        "large": pa.array(NAMES, pa.large_string()),
        "view": pa.array(NAMES, pa.string_view()),
        "dictionary": pa.array(NAMES).dictionary_encode(),
        "chunked": pa.chunked_array([NAMES[:3], [], NAMES[3:]]),
        "pandas": pd.Series(NAMES),
        "polars": pl.Series(NAMES),
    }


def test_text_has_one_fingerprint_however_it_is_given():
    join = fr.LabelJoin(seed=3)
    expected = join.fingerprints([*map(str, NAMES)])
    assert len(set(expected.tolist())) == len(NAMES)
    for form, ids in forms_of_text().items():
        assert (join.fingerprints(ids) == expected).all(), form
    assert (join.fingerprints(expected) == expected).all()


def test_whole_numbers_have_one_fingerprint_however_they_are_given():
    pa = pytest.importorskip("pyarrow")
    join = fr.LabelJoin(seed=3)
    values = [0, 1, 17, 100]
    expected = join.fingerprints(values)
    kinds = (np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float64, object, ">i4")
    for ids in [np.array(values, kind) for kind in kinds] + [pa.array(values), pa.array(values, pa.uint16())]:
        assert (join.fingerprints(ids) == expected).all(), ids
    assert (join.fingerprints([np.int32(0), True, 17.0, np.uint64(100)]) == expected).all()
    high = [2**63, 2**64 - 1]
    assert (join.fingerprints(np.array(high, np.uint64)) == join.fingerprints(high)).all()
    assert (join.fingerprints(np.array([2.0**63])) == join.fingerprints([2**63])).all()
    assert (join.fingerprints(np.array([0.5, -0.0])) == join.fingerprints([0.5, 0])).all()


def test_ids_that_differ_have_different_fingerprints():
    ids = [
        *(0, 1, -1, 2**63, -(2**63), 2**64, -(2**64), 2**70, 0.5, float("inf"), "0", "1", "", b"", b"0", "\ud800"),
        *((), ("",), (0,), ("0",), (0, 1), ((0,), 1), (b"a", "a"), ("ab", "c"), ("a", "bc"), "ab", "abc", "abc\0"),
        *(UUID(int=0), UUID(int=1), bytes(8), bytes(9), bytes(16), "\0"),
    ]
    assert len(set(fr.LabelJoin().fingerprints(ids).tolist())) == len(ids)


def test_the_hash_is_siphash_with_one_compression_and_three_finalization_rounds():
    """A plain SipHash-1-3 in Python, with its 128 bits cut to 96, over a block of kind and length and the bytes."""

    def siphash(key, message):
        mask = 2**64 - 1
        k0, k1 = struct.unpack("<QQ", key)
        v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

        def left(x, by):
            return (x << by | x >> (64 - by)) & mask

        def turn():
            for a, b, by in ((0, 1, 13), (2, 3, 16), (0, 3, 21), (2, 1, 17)):
                v[a] = (v[a] + v[b]) & mask
                v[b] = left(v[b], by) ^ v[a]
                if by in (13, 17):
                    v[a] = left(v[a], 32)

        for (block,) in struct.iter_unpack("<Q", message):
            v[3] ^= block
            turn()
            v[0] ^= block
        halves = []
        for i, change in ((2, 0xEE), (1, 0xDD)):
            v[i] ^= change
            for _ in range(3):
                turn()
            halves.append(v[0] ^ v[1] ^ v[2] ^ v[3])
        return halves[0], halves[1] & 0xFFFFFFFF

    join = fr.LabelJoin(seed=0x0123456789ABCDEF)
    for text in ("", "a", "12345678", "123456789", "ü" * 40):
        data = text.encode()
        message = struct.pack("<Q", 3 | len(data) << 8) + data + bytes(-len(data) % 8)
        assert join.fingerprints([text])[0].item() == siphash(join._key, message)
    assert join.fingerprints([-5])[0].item() == siphash(join._key, struct.pack("<Qq", 8 << 8, -5))


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ("abc", TypeError, "ids must be an array or a list"),
        (7, TypeError, "ids must be an array or a list"),
        ([1, None], ValueError, "None at position 1"),
        ([1.5, float("nan")], ValueError, "nan at position 1"),
        (np.array([1.0, np.nan]), ValueError, "nan at position 1"),
        (np.ma.masked_array([1, 2], [False, True]), ValueError, "'masked' at position 1"),
        ([1, [2]], TypeError, r"\[2\] at position 1"),
        ([1, (2, None)], ValueError, "None at position 1"),
        (np.zeros((2, 2)), ValueError, "2 dimensions"),
        (np.zeros(2, "M8[s]"), TypeError, "datetime64"),
        ([1, 2, 3], ValueError, "ids has 3 items, y_pred has 2"),
    ],
)
def test_ids_that_are_none_are_named(ids, error, message):
    join = fr.LabelJoin()
    with pytest.raises(error, match=message):
        join.predict(ids, [0, 1])
    assert join.waiting == 0


def test_nulls_of_arrow_are_named():
    pa = pytest.importorskip("pyarrow")
    for ids in (pa.array(["a", None]), pa.array([1, None]), pa.chunked_array([["a"], [None]])):
        with pytest.raises(ValueError, match="None at position 1"):
            fr.LabelJoin().predict(ids, [0, 1])


# Times and settings -------------------------------------------------------------------------------------------


def test_dates_are_compared_as_moments_whatever_their_form():
    join = fr.LabelJoin(max_wait=timedelta(hours=1))
    noon = datetime(2026, 3, 1, 12)
    join.predict([1, 2], [0, 1], times=[noon, noon + timedelta(minutes=30)])
    assert join.waiting_since == noon
    assert len(join.label([1], [1], times=np.datetime64("2026-03-01T13:00"))) == 1
    east = timezone(timedelta(hours=2))
    assert join.expire(datetime(2026, 3, 1, 15, 31, tzinfo=east)) == 1
    assert join.waiting_since is None
    assert len(join.label([2], [1], times=datetime(2026, 3, 1, 14, tzinfo=UTC))) == 0
    assert join.counts["late_labels"] == 1
    with pytest.raises(TypeError, match="times are numbers, but max_wait goes with dates"):
        join.predict([3], [0], times=[5.0])


def test_what_came_before_any_time_was_known_waits_from_the_first_time_on():
    join = fr.LabelJoin(max_wait=10)
    join.predict(["a"], [1])
    assert join.expire(1_000) == 0
    assert join.expire(1_010) == 0
    assert join.expire(1_011) == 1


def test_times_that_run_backwards_do_not_turn_back_the_clock():
    join = fr.LabelJoin(max_wait=10)
    join.predict(["a", "b"], [1, 1], times=[100, 5])
    assert join.expire(110) == 0
    assert join.expire(111) == 2


def test_the_oldest_leave_when_too_many_wait():
    join = fr.LabelJoin(max_waiting=2)
    join.predict(["a", "b", "c"], [1, 1, 1])
    assert (join.waiting, join.counts["displaced"]) == (2, 1)
    assert list(join.label(["a", "a", "b", "c"], [0, 0, 0, 0])) == [(0, 1), (0, 1)]
    assert (join.counts["late_labels"], join.counts["repeated_labels"]) == (1, 1)
    join.label(["x", "y", "z"], [0, 0, 0])
    assert (join.waiting_labels, join.counts["unmatched"]) == (2, 1)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"max_waiting": 0}, ValueError, "max_waiting 0 is less than 1"),
        ({"max_waiting": 10**9}, ValueError, "more than 500,000,000"),
        ({"max_remembered": -1}, ValueError, "less than 0"),
        ({"max_wait": -1}, ValueError, "not a length of time"),
        ({"max_wait": float("nan")}, ValueError, "not a length of time"),
        ({"max_wait": "1h"}, TypeError, "neither a number nor a timedelta"),
        ({"seed": 2**128}, ValueError, "below"),
        ({"labels": [1]}, ValueError, "at least two"),
    ],
)
def test_settings_that_make_no_sense_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        fr.LabelJoin(**parameters)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y_pred": [0, 2]}, ValueError, "position 1: 2 in column"),
        ({"times": [0.0, math.inf]}, ValueError, "position 1 is infinite"),
        ({"times": [0]}, ValueError, "times has the shape"),
        ({"times": ["x", "y"]}, TypeError, "neither numbers nor dates"),
        ({"times": [datetime(2026, 1, 1), 3]}, TypeError, "all be numbers, or all be dates"),
        ({"tags": [1]}, ValueError, "tags has the shape"),
        ({"tags": [0.5, 1]}, TypeError, "not integers"),
        ({"tags": np.array([0, 2**63], np.uint64)}, ValueError, "more than 63 bits"),
    ],
)
def test_a_bad_batch_is_refused_as_a_whole(arguments, error, message):
    join = fr.LabelJoin()
    before = join.to_bytes()
    with pytest.raises(error, match=message):
        join.predict([1, 2], **{"y_pred": [0, 1], **arguments})
    assert join.to_bytes() == before


def test_labels_are_given_back_as_they_are():
    join = fr.LabelJoin([("a", 1), "b", 3], None)
    join.predict([1, 2, 3], [("a", 1), "b", 3])
    pairs = join.label([3, 2, 1], ["b", ("a", 1), 3])
    assert list(pairs) == [("b", 3), (("a", 1), "b"), (3, ("a", 1))]
    fraud = fr.LabelJoin(["fraud", "fine"], positive="fraud")
    fraud.predict([1], ["fraud"])
    assert fraud.label([1], ["fine"]).truths.tolist() == [0]


# Copies, bytes, threads ---------------------------------------------------------------------------------------


def filled():
    join = fr.LabelJoin(max_waiting=40, max_wait=1_000, max_remembered=30)
    random = np.random.default_rng(8)
    join.replay(random.integers(0, 150, 400), random.integers(0, 2, 400), random.random(400) < 0.5, np.arange(400))
    return join


def test_a_clone_has_met_nothing_and_a_copy_everything():
    join = filled()
    assert not any(join.clone().counts.values())
    assert (
        repr(join.clone())
        == repr(join)
        == "LabelJoin(labels=[0, 1], positive=None, max_waiting=40, max_wait=1000, max_remembered=30)"
    )
    assert copy.copy(join).counts == join.counts
    other = copy.deepcopy(join)
    other.expire(10**6)
    assert other.counts != join.counts


def sealed(body):
    return body + struct.pack("<I", zlib.crc32(body))


def test_damaged_bytes_are_refused():
    saved = filled().to_bytes()
    assert fr.LabelJoin.from_bytes(bytearray(saved)).to_bytes() == saved
    for wrong in (b"", b"4rates", saved[:-1], saved + b"\0", saved[:40] + b"\xff" + saved[41:], b"x" + saved[1:]):
        with pytest.raises(ValueError, match=r"not a state|damaged"):
            fr.LabelJoin.from_bytes(wrong)
    with pytest.raises(ValueError, match="version 9"):
        fr.LabelJoin.from_bytes(sealed(saved[:6] + b"\x09" + saved[7:-4]))


@pytest.mark.slow
def test_forged_bytes_are_refused_or_give_a_join_that_works():
    """With a checksum that fits: a ValueError, or a table in which nothing breaks."""
    random = np.random.default_rng(3)
    body = filled().to_bytes()[:-4]
    refused = 0
    for _ in range(3_000):
        forged = bytearray(body)
        for _ in range(random.integers(1, 4)):
            at = int(random.integers(0, len(forged)) if random.random() < 0.6 else random.integers(6, 330))
            forged[at] = random.choice([0, 1, 127, 128, 255, int(random.integers(0, 256))])
        if random.random() < 0.1:
            forged = forged[: random.integers(0, len(forged))]
        try:
            join = fr.LabelJoin.from_bytes(sealed(bytes(forged)))
        except ValueError:
            refused += 1
            continue
        join.replay(np.arange(300), np.zeros(300, int), np.arange(300) % 2 == 0)
        fr.LabelJoin.from_bytes(join.to_bytes())
    assert 500 < refused < 3_000


def test_an_id_that_was_saved_twice_is_refused():
    join = fr.LabelJoin(seed=1)
    join.predict([1, 2], [0, 1])
    body = join.to_bytes()[:-4]
    with pytest.raises(ValueError, match="there twice"):
        fr.LabelJoin.from_bytes(sealed(body[:-40] + body[-80:-40]))


def test_labels_that_json_does_not_know_are_for_pickle():
    join = fr.LabelJoin([("a", 1), ("b", 2)])
    join.predict([1], [("b", 2)])
    with pytest.raises(TypeError, match="pickle does"):
        join.to_bytes()
    assert list(pickle.loads(pickle.dumps(join)).label([1], [("a", 1)])) == [(("a", 1), ("b", 2))]


def test_a_timedelta_survives_bytes():
    join = fr.LabelJoin(max_wait=timedelta(days=3), seed=4)
    join.predict([1], [1], times=datetime(2026, 1, 1))
    again = fr.LabelJoin.from_bytes(join.to_bytes())
    assert again.max_wait == timedelta(days=3)
    assert again.expire(datetime(2026, 1, 5)) == 1


def test_two_threads_at_once_are_an_error():
    """A tuple whose parts are looked at in the middle of a call, from where another thread calls."""
    join, errors = fr.LabelJoin(), []

    def intrude():
        for call in (lambda: join.label([1], [1]), lambda: join.expire(1), join.to_bytes, lambda: join.nbytes):
            try:
                call()
            except RuntimeError as error:
                errors.append(str(error))

    class Id(tuple):
        __slots__ = ()

        def __iter__(self):
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()
            return super().__iter__()

    join.predict([Id((1, 2))], [1])
    assert len(errors) == 4
    assert all("another thread is using this LabelJoin" in error for error in errors)
    assert join.waiting == 1
    assert len(join.label([(1, 2)], [0])) == 1
