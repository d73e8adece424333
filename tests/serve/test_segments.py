"""Names of segments and their numbers."""

import random

import pytest

pytest.importorskip("starlette")

from fourrates.serve.segments import Segments


def test_names_get_numbers_in_the_order_in_which_they_appear_and_keep_them():
    segments, numbers = Segments(2_000), {}
    rng = random.Random(17)
    for _ in range(300):
        names = rng.sample([f'["{n}"]' for n in range(1_500)], rng.choice([0, 1, 2, 40]))
        expected = [numbers.setdefault(name, len(numbers)) for name in names]
        assert segments.take(names).tolist() == expected
    assert len(segments) == len(numbers) > 1_000
    assert segments.names == [*numbers]
    again = Segments(2_000)
    again.restore(segments.names)
    assert again.take([*numbers]).tolist() == [*numbers.values()]
    assert again.take(["one more"]).tolist() == [len(numbers)]


def test_too_many_are_refused_and_nothing_changes():
    segments = Segments(3)
    segments.take(["a", "b"])
    with pytest.raises(ValueError, match="more than 3 segments"):
        segments.take(["c", "a", "d"])
    assert len(segments) == 2
    assert segments.take(["d", "a"]).tolist() == [2, 0]


def test_a_saved_name_that_comes_twice_is_refused():
    with pytest.raises(ValueError, match="do not fit"):
        Segments(10).restore(["a", "a"])
