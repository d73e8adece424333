"""Keys to slots, as a dictionary has them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourrates.kernel.index import Index


@pytest.mark.slow
@given(st.lists(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-50, 50), st.integers(0, 10**6)))))
@settings(max_examples=100, deadline=None)
def test_the_index_is_a_dictionary(batches):
    index, known = Index(5), {}
    for batch in batches:
        for key in batch:
            known.setdefault(key, len(known))
        slots = np.empty(len(batch), np.int32)
        index.take(np.array(batch, np.int64), index.size, slots)
        assert slots.tolist() == [known[key] for key in batch]
    keys = np.array([*known, 10**17], np.int64)
    slots = np.empty(keys.size, np.int32)
    index.find(keys, slots)
    assert slots.tolist() == [*known.values(), known.get(10**17, -1)]


@pytest.mark.parametrize("scale", [1, -1, 3, 1 << 40])
def test_the_index_grows_and_takes_few_bytes_a_key(scale):
    index = Index(5)
    random = np.random.default_rng(5)
    keys = random.permutation(300_000) * scale
    slots = np.empty(keys.size, np.int32)
    index.take(keys, 0, slots)
    assert (slots == np.arange(keys.size)).all()
    again = np.empty_like(slots)
    index.find(keys[::-1].copy(), again)
    assert (again[::-1] == slots).all()
    assert index.nbytes <= 44 * keys.size
