"""Budgets as people say them."""

import numpy as np
import pytest

from fourrates.budget.words import default_budget, event_rate, run_length

DAY = 86_400


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("100000", 100_000),
        ("1e5", 100_000),
        ("100_000 events", 100_000),
        ("1 per 50,000 events", 50_000),
        ("2 per week", 3.5 * DAY),
        ("1 per 30 days", 30 * DAY),
        ("one a quarter", 91.31 * DAY),
        ("One per Month", 30.44 * DAY),
        ("two false alarms a year", 365.25 / 2 * DAY),
        ("1 every 3 months", 3 * 30.44 * DAY),
        ("a month", None),
        ("soon", None),
        ("", None),
        ("per", None),
        ("-5", None),
        ("1 per fortnight", None),
        ("0", None),
        ("1 per 0 days", None),
    ],
)
def test_a_budget_means_what_it_says_or_is_refused(text, length):
    if length is None:
        with pytest.raises(ValueError, match="budget"):
            run_length(text, 1.0)
    else:
        assert run_length(text, 1.0) == pytest.approx(length)


def test_a_time_needs_times():
    with pytest.raises(ValueError, match="needs a column of times"):
        run_length("1 per month", None)


@pytest.mark.parametrize("times", [None, [], ["2026-01-01"], ["2026-01-01T12", "2026-01-01T12"], ["NaT", "2026-01-01"]])
def test_times_that_tell_no_rate(times):
    assert event_rate(None if times is None else np.array(times, "M8[us]")) is None


def test_the_default_is_one_a_month_at_the_volume_of_the_data():
    length, said = default_budget(1000 / DAY)
    assert length == pytest.approx(30_440)
    assert said == "budget: one false alarm a month, which is 30,440 events at 1,000 a day"
    assert default_budget(1 / DAY)[0] == 100  # a handful of events a month: no detector could keep a smaller one
    assert default_budget(None)[0] == 100_000


def test_dates_without_a_time_count_their_last_day_too():
    times = np.repeat(np.arange("2026-09-01", "2026-09-08", dtype="M8[D]"), 100).astype("M8[us]")
    assert 86_400 * event_rate(times) == pytest.approx(100)
