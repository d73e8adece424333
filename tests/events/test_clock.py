"""Times of one source."""

import numpy as np
import pytest

from fourrates.events.clock import Clock

pa = pytest.importorskip("pyarrow")
TEXTS = ["2026-01-01T00:00:00Z", "01.09.2026", "09/13/2026", "03/04/2026", "1767225600000", "1767225600", "x", None]


def test_times_in_a_dictionary_are_read_as_if_written_out():
    random = np.random.default_rng(1)
    for _ in range(300):
        plain = pa.array([TEXTS[i] for i in random.integers(0, len(TEXTS), random.integers(0, 8))], pa.string())
        coded = plain.dictionary_encode()
        order = random.permutation(len(coded.dictionary))  # unit and day are settled by the rows, not by this
        codes = [None if code is None else int(np.argsort(order)[code]) for code in coded.indices.to_pylist()]
        coded = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), coded.dictionary.take(pa.array(order)))
        first, second = Clock(), Clock()
        for expected, found in zip(first.read(plain), second.read(coded), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert (second.unit, second.dates) == (first.unit, first.dates)


def test_a_long_text_in_a_dictionary_of_times_takes_memory_once():
    coded = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), pa.array(["x" * 20_000_000]))  # else 6 GB
    times, _, bad = Clock().read(coded)
    assert np.isnat(times).all()
    assert bad.all()
