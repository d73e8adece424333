"""What a run length may be asked about."""

import math

import pytest

import fourrates as fr


def test_a_class_that_never_comes_is_left_out():
    detector = fr.LFR(detect=1e-3, labels=["a", "b", "c"])
    found = fr.budget.expected_run_length(detector, [[40, 10, 0], [10, 40, 0], [0, 0, 0]], alarms=20)
    assert math.isfinite(found.mean)


@pytest.mark.parametrize(
    ("confusion", "message"),
    [
        ([[1, 2, 3]], r"has shape \(1, 3\), not \(2, 2\)"),
        ([[1, -2], [1, 1]], "something other than probabilities or counts"),
        ([[0, 0], [0, 0]], "something other than probabilities or counts"),
        ([[1, math.nan], [1, 1]], "something other than probabilities or counts"),
    ],
)
def test_what_is_no_confusion_matrix_is_refused(confusion, message):
    with pytest.raises(ValueError, match=message):
        fr.budget.expected_run_length(fr.LFR(), confusion)
