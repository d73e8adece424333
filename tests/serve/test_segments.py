"""Names of segments and their numbers."""

import random

import pytest

pytest.importorskip("starlette")

from fourrates.serve.config import MonitorConfig
from fourrates.serve.monitor import Monitor
from fourrates.serve.settings import Settings


@pytest.fixture
def make(tmp_path):
    return lambda most: Monitor(MonitorConfig(by=["k"]), bytes(16), Settings(data=tmp_path, max_segments=most))


def test_names_get_numbers_in_the_order_in_which_they_appear_and_keep_them(make):
    monitor, numbers = make(2_000), {}
    rng = random.Random(17)
    for _ in range(300):
        names = rng.sample([f'["{n}"]' for n in range(1_500)], rng.choice([0, 1, 2, 40]))
        expected = [numbers.setdefault(name, len(numbers)) for name in names]
        assert monitor.segment_numbers(names).tolist() == expected
    assert monitor.segments == numbers
    again = Monitor.restore(monitor.snapshot(), bytes(16), monitor.settings)
    assert again.segment_numbers([*numbers]).tolist() == [*numbers.values()]
    assert again.segment_numbers(["one more"]).tolist() == [len(numbers)]


def test_too_many_are_refused_and_nothing_changes(make):
    monitor = make(3)
    monitor.segment_numbers(["a", "b"])
    with pytest.raises(ValueError, match="more than 3 segments"):
        monitor.segment_numbers(["c", "a", "d"])
    assert len(monitor.segments) == 2
    assert monitor.segment_numbers(["d", "a"]).tolist() == [2, 0]


def test_a_saved_name_that_comes_twice_is_refused(make):
    monitor = make(10)
    monitor._names = ["a", "a"]
    with pytest.raises(ValueError, match="do not fit"):
        Monitor.restore(monitor.snapshot(), bytes(16), monitor.settings)
