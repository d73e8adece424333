"""Airflow: has the model drifted? One task a day, which fails when it has, so that Airflow tells who has to know."""

from __future__ import annotations

import pendulum
from airflow.sdk import dag, task

PREDICTIONS, STATE = "/srv/cards/predictions", "/srv/cards/model.state"


@dag(schedule="15 6 * * *", start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False, max_active_runs=1)
def cards_drift():
    """Labels and predictions of the day to the state of the days before."""

    @task.bash
    def look() -> str:
        return f"fourrates detect {PREDICTIONS} --state {STATE} --report /srv/cards/report.html --fail-on open"

    look()


cards_drift()
