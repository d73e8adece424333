"""A drift is open until it is withdrawn, the rates are back, or somebody accepts it; also after a kill."""

import re

import numpy as np
import pytest

pytest.importorskip("starlette")
from served import Served

from fourrates.serve.app import Service
from fourrates.serve.limits import uvicorn_options
from fourrates.serve.settings import Settings

DAYS_3 = 3 * 86_400


def events(size, tpr, seed, **columns):
    """Balanced classes at tnr 0.9 and this tpr, with the same values of other columns throughout."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, size)
    right = random.random(size) < np.where(truth == 1, tpr, 0.9)
    found = {"y_true": truth.tolist(), "y_pred": np.where(right, truth, 1 - truth).tolist()}
    return found | {name: [value] * size for name, value in columns.items()}


class Monitored:
    """A server with one monitor."""

    def __init__(self, start, **config):
        self.served = start()
        assert self.served.http.put("/api/monitors/m", json={"arl": 20_000, **config}).status_code == 201

    def ask(self, path="", method="GET", **given):
        answer = self.served.http.request(method, f"/api/monitors/m{path}", **given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def send(self, size, tpr, seed, time, country=None):
        body = events(size, tpr, seed, time=time)
        if country is not None:
            body["by"] = {"country": [country] * size}
        return self.ask("/events", "POST", json=body)["findings"]

    def kinds(self):
        """What was found, the earliest first: kind and segment."""
        found = [one for one in self.ask("/drifts")["drifts"] if one["kind"] != "shift"]
        return [(one["kind"], (one["segment"] or {}).get("country")) for one in reversed(found)]

    def segment(self, country):
        return next(one for one in self.ask("/segments")["segments"] if one["segment"] == {"country": country})


def test_a_segment_is_drifted_until_its_rates_are_back_where_they_were(start):
    monitor = Monitored(start, by=["country"])
    for place, country in enumerate(["DE", "FR"]):
        monitor.send(4_000, 0.85, place, 1e9, country)
    monitor.send(400, 0.35, 3, 1e9 + 60, "DE")
    assert monitor.segment("DE")["status"] == "drifted"
    assert monitor.segment("FR")["status"] == "stable"
    # It is open however long that is: three days later, and though nothing changes any more.
    monitor.send(3_000, 0.35, 4, 1e9 + DAYS_3, "DE")
    shown = monitor.ask()
    assert (shown["status"], shown["drifted_segments"], shown["since"]) == ("drifted", 1, "2001-09-09T01:47:40.000Z")
    # Half of the way back is an improvement; all of it is the recovery.
    monitor.send(3_000, 0.6, 5, 1e9 + DAYS_3 + 60, "DE")
    assert monitor.segment("DE")["status"] == "drifted"
    monitor.send(3_000, 0.85, 6, 1e9 + DAYS_3 + 120, "DE")
    assert monitor.segment("DE")["status"] == "stable"
    assert monitor.ask()["drifted_segments"] == 0
    found = [kind for kind, country in monitor.kinds() if country == "DE"]
    assert found[:2] == ["drift", "confirmation"]
    assert found[-1] == "recovery"
    assert set(found[2:-1]) == {"improvement"}
    *_, drift = [one for one in monitor.ask("/drifts")["drifts"] if one["segment"]]
    latest = next(one for one in monitor.ask("/drifts")["drifts"] if one["kind"] == "recovery" and one["segment"])
    assert re.fullmatch(r"m, country DE: recovery at [\d,]+ of the drift at .*", latest["text"])
    assert (latest["drift"], latest["closes"]) == (drift["at"], True)


def test_the_drift_of_the_whole_is_told_while_it_is_open_whatever_its_segments_do(start):
    monitor = Monitored(start, by=["country"])
    for place, country in enumerate(["DE", "FR"]):
        monitor.send(4_000, 0.85, place, 1e9, country)
    for place, country in enumerate(["DE", "FR"]):
        monitor.send(600, 0.35, 2 + place, 1e9 + 60, country)
    one = monitor.ask()
    assert one["last_finding"]["segment"] == {"country": "FR"}
    assert (one["drift"]["kind"], one["drift"]["segment"]) == ("drift", None)
    everything = monitor.ask("/drifts")["drifts"]
    of_whole = monitor.ask("/drifts?of=overall")["drifts"]
    assert of_whole == [finding for finding in everything if finding["segment"] is None] != everything
    assert monitor.ask(f"/drifts?of=overall&limit=1&before={of_whole[0]['id']}")["drifts"] == of_whole[1:2]
    assert monitor.served.http.get("/api/monitors/m/drifts?of=some").status_code == 422
    monitor.served.close()
    again = start()
    assert again.http.get("/api/monitors/m").json()["drift"] == one["drift"]
    seen = again.http.post(f"/api/monitors/m/drifts/{one['drift']['id']}/accept")
    assert seen.status_code == 200
    assert again.http.get("/api/monitors/m").json()["drift"] is None


def test_a_drift_is_the_new_normal_once_somebody_accepts_it(start):
    monitor = Monitored(start)
    monitor.send(4_000, 0.85, 1, 1e9)
    drift, _ = monitor.send(600, 0.45, 2, 1e9 + 60)
    monitor.ask(f"/drifts/{drift}/acknowledge", "POST")
    assert monitor.ask()["status"] == "drifted"
    monitor.ask(f"/drifts/{drift}/accept", "POST")
    assert monitor.ask()["status"] == "stable"
    accepted = monitor.ask("/drifts?limit=1")["drifts"][0]
    assert (accepted["kind"], accepted["at"], accepted["closes"]) == ("acceptance", 4_599, True)
    assert accepted["drift"] == monitor.ask(f"/drifts/{drift}")["at"]
    monitor.send(3_000, 0.45, 3, 1e9 + 120)
    assert monitor.ask()["status"] in ("stable", "warning")
    # From now on it is compared with this: what was once normal is a drift.
    monitor.send(600, 0.85, 4, 1e9 + 180)
    assert monitor.ask()["status"] == "drifted"
    kinds = [kind for kind, _ in monitor.kinds()]
    assert kinds == ["drift", "confirmation", "acceptance", "drift", "confirmation"]


def test_a_drift_away_from_the_reference_stays_open_though_somebody_has_seen_it(start):
    monitor = Monitored(start, reference=[[4500, 500], [750, 4250]])
    drift, _ = monitor.send(600, 0.45, 2, 1e9 + 60)
    monitor.ask(f"/drifts/{drift}/acknowledge", "POST")
    assert monitor.ask()["status"] == "drifted"
    monitor.send(3_000, 0.85, 3, 1e9 + DAYS_3)
    assert monitor.ask()["status"] == "stable"
    assert monitor.kinds()[-1] == ("recovery", None)


def test_a_false_alarm_is_withdrawn_and_nothing_is_open_any_more(start):
    monitor = Monitored(start)
    monitor.send(4_000, 0.85, 1, 1e9)
    (drift,) = monitor.send(74, 0.45, 2, 1e9 + 60)
    assert monitor.ask()["status"] == "drifted"
    (withdrawal,) = monitor.send(600, 0.85, 3, 1e9 + 120)
    assert monitor.ask()["status"] == "stable"
    found = monitor.ask(f"/drifts/{withdrawal}")
    assert (found["kind"], found["closes"]) == ("withdrawal", True)
    assert found["drift"] == monitor.ask(f"/drifts/{drift}")["at"]
    assert found["text"].startswith("m: withdrawal at ")


def test_a_drift_before_normal_is_known_is_reported_and_not_open(start):
    monitor = Monitored(start)
    monitor.send(30, 1.0, 1, 1e9)
    (drift,) = monitor.send(60, 0.0, 2, 1e9 + 60)
    assert monitor.ask(f"/drifts/{drift}")["normal_known"] is False
    assert (monitor.ask()["status"], monitor.ask()["drifts"]) == ("stable", 1)


@pytest.mark.slow
def test_open_drifts_are_the_same_after_a_start_from_the_journal(start, tmp_path):
    monitor = Monitored(start, by=["country"])
    for place, country in enumerate(["DE", "FR", "IT"]):
        monitor.send(4_000, 0.85, place, 1e9, country)
    for place, country in enumerate(["DE", "FR", "IT"]):
        monitor.send(400, 0.35, 10 + place, 1e9 + 60, country)
    found = [one for one in monitor.ask("/drifts")["drifts"] if one["kind"] == "drift"]
    drifts = {(one["segment"] or {}).get("country"): one["id"] for one in found}
    monitor.ask(f"/drifts/{drifts['FR']}/accept", "POST")
    # For FR the way back is a drift now, and for IT, where nobody accepted anything, the recovery.
    for place, country in enumerate(["FR", "IT"]):
        monitor.send(2_000, 0.85, 20 + place, 1e9 + 120, country)
    before = {country: monitor.segment(country)["status"] for country in ("DE", "FR", "IT")}
    assert before == {"DE": "drifted", "FR": "drifted", "IT": "stable"}
    monitor.served.close()
    settings = Settings(data=tmp_path / "data")
    again = Served(Service(settings), **uvicorn_options(settings.max_body))
    try:
        found = monitor.served.http.get(f"{again.url}/api/monitors/m/segments").json()["segments"]
        assert {one["segment"]["country"]: one["status"] for one in found} == before
    finally:
        again.close()
