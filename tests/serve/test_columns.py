"""Columns of JSON: the quick way finds what the slow one does."""

import random

import msgspec
import pytest

pytest.importorskip("starlette")

from fourrates.serve.columns import Plan, read_labels
from fourrates.serve.config import MonitorConfig


@pytest.mark.parametrize("labels", [[0, 1], [1, 10], ["a", "b", "ab"], [1, "1", "10", 10], [7, 8, 9, "7"]])
def test_labels_have_the_same_codes_whichever_way_they_are_read(labels):
    plan = Plan(MonitorConfig(labels=labels))
    rng = random.Random(17)
    for _ in range(100):
        values = rng.choices([*labels, *labels, 2, "c", "", 101], k=rng.choice([0, 1, 2, 30]))
        text = msgspec.json.encode(values)
        if rng.random() < 0.5:
            text = text.replace(b",", b" ,\n ").replace(b"[", b"[ ")
        quick, slow = read_labels(msgspec.Raw(text), "y_true", plan), read_labels(values, "y_true", plan)
        assert quick.values.tolist() == slow.values.tolist()
        assert (quick.size, quick.problems) == (slow.size, slow.problems)
