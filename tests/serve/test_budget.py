"""A budget in time becomes one in events by the times of the events."""

import json

import pytest

pytest.importorskip("starlette")

from fourrates.serve.bodies import Limits, Plan, make_batch, read_table
from fourrates.serve.config import MonitorConfig
from fourrates.serve.monitor import Monitor
from fourrates.serve.settings import Settings

DAY, MONTH = 86_400, 30.4375


def test_a_budget_in_time_recovers_from_old_events_that_were_sent_at_once(tmp_path):
    config, limits = MonitorConfig(budget="1 per month"), Limits(1_000_000, 16 << 20)
    monitor, plan = Monitor(config, bytes(16), Settings(data=tmp_path)), Plan(config)

    def send(size, received):
        body = json.dumps({"y_true": [0, 1] * (size // 2), "y_pred": [0, 1] * (size // 2)}).encode()
        batch, _ = make_batch(0, read_table(body, "application/json", [], limits), plan, received, limits=limits)
        monitor.apply(batch)

    send(2_000, 1e9)
    send(2_000, 1e9 + 1)
    assert monitor.arl > 1e9  # 4,000 in a second
    for day in range(1, 4):
        send(1_000, 1e9 + day * DAY)
    assert monitor.arl == pytest.approx(7_000 / 3 * MONTH, rel=1)  # 7,000 in three days: within a factor of two
