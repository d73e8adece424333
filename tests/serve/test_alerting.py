"""Alerts of monitors: what fires, what is resolved, who is told and when, and that a kill loses none of it."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import httpx
import numpy as np
import pytest
from receiver import Receiver, wait_until

pytest.importorskip("starlette")
from fourrates.alerts.text import message
from fourrates.serve.alert_state import OpenNow, Watched
from fourrates.serve.alerting import Alerting, Channels, channel_of, check_channels
from fourrates.serve.config import AlertsConfig
from fourrates.serve.settings import Settings
from fourrates.serve.store import open_store
from fourrates.serve.store.base import Group, StoredFinding

T = 1_800_000_000.0


class Bench:
    """A store, a monitor in it, alerts, and a receiver that they are sent to."""

    def __init__(self, folder, receiver, **options):
        self.folder, self.receiver, self.options = folder, receiver, options
        self.store = open_store(Settings(data=folder))
        self.row = self.store.add_monitor("fraud", "u1", bytes(16))
        self.number = 0
        self.begin()

    def begin(self):
        """As a process does that has just been started."""
        self.channels = Channels(self.folder)
        settings = {"group_interval": 0.0, **self.options}
        self.alerting = Alerting(self.store, self.channels, **settings)

    def watched(self, **facts):
        rules = {"channels": [self.receiver.url], **facts.pop("rules", {})}
        return Watched(self.row.id, "u1", "fraud", AlertsConfig(**rules), **facts)

    def find(self, kind="drift", segment=None, text=None, **facts):
        self.number += 1
        id = f"f{self.number}"
        text = text or f"fraud: {kind} {self.number}"
        closes = kind in ("withdrawal", "recovery", "acceptance")
        body = {
            "id": id,
            "kind": kind,
            "segment": segment,
            "text": text,
            "at": 7,
            "closes": closes,
            "changes": [],
            **({name: {"value": 0.5} for name in ("before", "after")} if kind == "shift" else {}),
        } | facts
        self.store.commit(Group(findings=[StoredFinding(id, self.row.id, kind, json.dumps(body).encode())]))
        return id

    def acknowledge(self, id):
        body = json.loads(self.store.finding(self.row.id, id).body)
        self.store.change_finding(id, json.dumps(body | {"acknowledged": at(0)}).encode())

    def tick(self, at=0.0, **facts):
        self.alerting.tick(T + at, [self.watched(**facts)])

    def sent(self):
        """Notifications that were put into the spool, delivered by now or not."""
        with closing(sqlite3.connect(self.channels.path)) as spool:
            return spool.execute("SELECT count(*) FROM entries").fetchone()[0]

    def told(self, number):
        self.receiver.wait_for(number)
        assert (self.sent(), len(self.receiver.requests)) == (number, number)
        return [json.loads(request.body) for request in self.receiver.requests]

    def close(self):
        self.channels.close(0.5)
        self.store.close()


@pytest.fixture
def bench(tmp_path, receiver):
    made = Bench(tmp_path / "data", receiver)
    yield made
    made.close()


@pytest.mark.parametrize("end", ["withdrawal", "recovery", "acceptance"])
def test_a_drift_fires_and_what_closes_it_resolves_it_as_alertmanager_means_that(bench, end):
    drift = bench.find()
    bench.tick()
    bench.find("confirmation")
    bench.find("improvement")
    bench.tick(1)
    (fired,) = bench.told(1)
    closed = bench.find(end)
    bench.tick(2)
    bench.tick(3)
    fired, resolved = bench.told(2)
    assert (fired["status"], fired["kind"], fired["text"]) == ("firing", "drift", "fraud drifted")
    assert (resolved["status"], resolved["kind"]) == ("resolved", end)
    one, other = fired["alerts"][0], resolved["alerts"][0]
    assert (one["status"], other["status"]) == ("firing", "resolved")
    assert one["fingerprint"] == other["fingerprint"]
    assert one["startsAt"] == other["startsAt"]
    assert one["endsAt"].startswith("0001-")
    assert other["endsAt"] > other["startsAt"]
    assert one["labels"] == {"alertname": "ClassifierDrift", "monitor": "fraud"}
    assert [one["findings"], other["findings"]] == [[drift], [closed]]
    assert fired["id"] != resolved["id"]


def at(minute):
    return f"2026-09-01T12:{minute:02d}:00.000Z"


DE, FR = {"country": "DE"}, {"country": "FR"}


@pytest.mark.parametrize("first", ["overall", "segment"])
def test_segments_that_drifted_with_the_overall_stream_are_part_of_its_alert(bench, first):
    drifts = [(None, at(10), at(5)), (DE, at(9), at(6))]
    for segment, time_, started in drifts if first == "overall" else drifts[::-1]:
        bench.find(segment=segment, time=time_, started_time=started)
    bench.tick()
    bench.find(segment=FR, time=at(20), started_time=at(8))  # found later, but it had started
    bench.tick(1)
    (told,) = bench.told(1)
    assert [alert["segment"] for alert in told["alerts"]] == [None]
    assert told["alerts"][0]["segments"] == [DE]
    assert told["text"] == "fraud drifted in country DE\nSince about 2026-09-01 12:05, found 12:10 UTC"
    bench.find("recovery", text="fraud: back")
    bench.find("withdrawal", segment=DE)
    bench.tick(2)
    still = bench.told(2)[-1]
    assert (still["status"], still["text"]) == ("firing", "fraud: overall back at normal, still open in country FR")
    last = bench.find("recovery", segment=FR)
    bench.tick(3)
    resolved = bench.told(3)[-1]
    assert [(alert["status"], alert["segment"]) for alert in resolved["alerts"]] == [("resolved", None)]
    told = [id for body in bench.told(3) for alert in body["alerts"] for id in alert["findings"]]
    assert sorted(told) == [f"f{number}" for number in range(1, 7)], "each finding is told once"
    assert last in resolved["alerts"][0]["findings"]


def test_a_segment_that_drifts_after_the_overall_stream_did_is_an_alert_of_its_own(bench):
    bench.find(time=at(10), started_time=at(5))
    bench.tick()
    bench.find(segment=DE, time=at(40), started_time=at(30))
    bench.tick(1)
    assert [alert["segment"] for alert in bench.told(2)[-1]["alerts"]] == [DE]


@pytest.mark.parametrize("segments", [0, 1])
def test_a_later_alarm_does_not_move_the_date_of_the_drift_named_first(bench, segments):
    opened = [OpenNow(None, "tpr 0.645", at(5), at(10)), OpenNow(FR, "tpr 0.354", at(4), at(9))][: 1 + segments]
    for one in opened[::-1]:
        bench.find(segment=one.segment, time=one.found, started_time=one.started)
    bench.find(time=at(50), started_time=at(45), further=True)
    bench.tick(0, open=opened)
    head, since = bench.told(1)[0]["text"].split("\n")[:: 1 + segments]
    assert head.startswith("fraud drifted in country FR: tpr 0.354" if segments else "fraud drifted: tpr 0.645")
    assert since == f"Since about 2026-09-01 12:0{5 - segments}, found 12:{10 - segments:02d} UTC"


def test_an_alert_says_how_the_rates_are_now(bench):
    bench.find(text="fraud: tpr fell")
    bench.tick(0, open=[OpenNow(None, "tpr 0.310 (0.280 to 0.342 of 512; normal 0.750)")])
    (told,) = bench.told(1)
    assert told["text"] == "fraud drifted: tpr 0.310 (0.280 to 0.342 of 512; normal 0.750)"


def test_what_happens_at_the_same_time_is_told_together(bench):
    ids = [bench.find(segment={"country": f"C{number}"}) for number in range(150)]
    bench.tick()
    (told,) = bench.told(1)
    assert told["text"].startswith("fraud drifted in country C0\n")
    assert told["text"].endswith("and 140 more")
    assert (len(told["alerts"]), told["truncatedAlerts"]) == (100, 50)
    assert [alert["findings"] for alert in told["alerts"]] == [[id] for id in ids[:100]]
    assert len({alert["fingerprint"] for alert in told["alerts"]}) == 100
    assert told["alerts"][3]["labels"] == {"country": "C3", "alertname": "ClassifierDrift", "monitor": "fraud"}


def test_a_monitor_is_told_about_no_more_often_than_allowed(tmp_path, receiver):
    bench = Bench(tmp_path / "data", receiver, group_interval=60.0)
    for at in range(0, 120, 5):
        bench.find()
        bench.tick(at)
    told = bench.told(2)
    found = [id for one in told for alert in one["alerts"] for id in alert["findings"]]
    assert found == [f"f{number}" for number in range(1, 14)], "at 0 the first, at 60 all that came since, in order"
    bench.tick(125)
    assert len(bench.told(3)[2]["alerts"][0]["findings"]) == 11
    bench.close()


def test_a_silenced_monitor_tells_nothing_and_then_what_still_fires(bench):
    stays, goes = {"country": "FR"}, {"country": "DE"}
    silence = {"silences": {"": T + 100}}
    bench.find(segment=stays)
    bench.find(segment=goes)
    bench.tick(0, **silence)
    bench.find("recovery", segment=goes)
    bench.tick(50, **silence)
    assert bench.sent() == 0
    bench.tick(101, **silence)
    (told,) = bench.told(1)
    assert [alert["segment"] for alert in told["alerts"]] == [stays]


def test_what_was_told_before_a_silence_is_told_to_be_resolved_after_it(bench):
    bench.find()
    bench.tick(0)
    bench.find("recovery")
    bench.tick(10, silences={"": T + 100})
    assert len(bench.told(1)) == 1
    bench.tick(101, silences={"": T + 100})
    assert bench.told(2)[1]["status"] == "resolved"


def test_what_still_fires_is_repeated_until_somebody_acknowledges_it(bench):
    day = 86_400
    drift = bench.find()
    for at in (0, day / 2, 1.1 * day, 1.2 * day):
        bench.tick(at)
    first, again = bench.told(2)
    assert again["text"] == f"Still open: {first['text']}"
    assert again["id"] != first["id"]
    bench.acknowledge(drift)
    for at in (2.5 * day, 5 * day):
        bench.tick(at)
    assert len(bench.told(2)) == 2


def test_an_acknowledged_drift_is_not_repeated_when_only_its_segments_are_still_open(bench):
    drift = bench.find(time=at(10), started_time=at(5))
    bench.find(segment=DE, time=at(9), started_time=at(6))
    bench.tick()
    bench.acknowledge(drift)
    bench.find("recovery")
    for seconds in (1, 90_000, 180_000):
        bench.tick(seconds)
    assert [sent["text"].partition("\n")[0] for sent in bench.told(2)][1] == (
        "fraud: overall back at normal, still open in country DE"
    )


def test_each_drift_fires_until_it_is_closed(bench):
    bench.find(segment={"country": "FR"})
    bench.find(segment={"country": "DE"})
    bench.tick()
    bench.find("acceptance", segment={"country": "FR"})
    bench.tick(61)
    assert [alert["segment"] for alert in bench.told(2)[1]["alerts"]] == [{"country": "FR"}]
    bench.tick(86_500)  # a day later it still fires
    told = bench.told(3)[2]
    assert (told["status"], [alert["segment"] for alert in told["alerts"]]) == ("firing", [{"country": "DE"}])
    bench.find("recovery", segment={"country": "DE"})
    bench.tick(90_000)
    assert bench.told(4)[3]["status"] == "resolved"


def test_a_drift_that_ended_before_anybody_was_notified_sends_nothing(bench):
    """As in a backfill: all of a past year arrives at once, and only its last drift is still open."""
    for kind in ("drift", "withdrawal", "drift", "recovery"):
        bench.find(kind)
    bench.tick(0, open=[])
    assert not bench.sent()
    for kind in ("drift", "recovery", "drift"):
        bench.find(kind)
    bench.tick(10, open=[OpenNow(None, "")])
    (sent,) = bench.told(1)
    assert [alert["status"] for alert in sent["alerts"]] == ["firing"]


def test_a_shift_of_the_classes_is_the_new_normal_after_a_day(bench):
    bench.find("shift")
    bench.tick(mix="alarm")
    bench.tick(86_500, mix="alarm")
    assert [told["status"] for told in bench.told(2)] == ["firing", "resolved"]


def test_a_stream_that_falls_silent_fires_and_events_resolve_it(bench):
    rules = {"silent_after": "30 minutes"}
    bench.tick(0, rules=rules, position=5)
    bench.tick(1_700, rules=rules, position=5)
    bench.tick(1_801, rules=rules, position=5)
    bench.tick(1_900, rules=rules, position=5)
    (told,) = bench.told(1)
    assert (told["kind"], told["text"]) == ("silent", "fraud: no events for more than 30 minutes")
    bench.tick(2_000, rules=rules, position=6)
    assert bench.told(2)[1]["status"] == "resolved"


def test_a_server_that_was_away_does_not_blame_the_stream_for_it(bench):
    rules = {"silent_after": "30 minutes"}
    bench.tick(0, rules=rules, position=5)
    bench.begin()
    bench.tick(7_200, rules=rules, position=5)
    assert bench.sent() == 0


def test_a_restart_does_not_end_a_silence_of_the_stream(bench):
    rules = {"silent_after": "30 minutes"}
    bench.tick(0, rules=rules, position=5)
    bench.tick(1_900, rules=rules, position=5)
    bench.told(1)
    bench.begin()
    bench.tick(2_000, rules=rules, position=5)
    bench.tick(2_100, rules=rules, position=5)
    assert [one["status"] for one in bench.told(1)] == ["firing"]
    bench.tick(2_200, rules=rules, position=6)
    assert bench.told(2)[1]["status"] == "resolved"


def test_only_what_arrives_ends_a_silence_of_the_stream(start):
    served = start()
    served.http.put("/api/monitors/m", json={"arl": 2_000, "by": ["shop"]})

    def position():
        service = served.app
        (found,) = asyncio.run_coroutine_threadsafe(service.watched(), service.writer._loop).result(10)
        return found.position

    seen = [position()]
    for kind, body in (
        ("events", {"y_true": [1], "y_pred": [1], "by": {"shop": ["a"]}}),
        ("predictions", {"id": ["a"], "y_pred": [1], "by": {"shop": ["a"]}}),
        ("predictions", {"id": ["a"], "y_pred": [1], "by": {"shop": ["a"]}}),
        ("labels", {"id": ["b"], "y_true": [1]}),
        ("labels", {"id": ["a"], "y_true": [1]}),
        ("labels", {"id": ["a"], "y_true": [1]}),
        ("events", {"y_true": [1], "y_pred": [1], "id": ["c"], "by": {"shop": ["a"]}}),
        ("events", {"y_true": [1], "y_pred": [1], "id": ["c"], "by": {"shop": ["a"]}}),
    ):
        assert served.http.post(f"/api/monitors/m/{kind}", json=body).status_code == 200
        seen.append(position())
    assert len({*seen}) == len(seen)
    served.http.patch("/api/monitors/m", json={"arl": 3_000})
    assert position() == seen[-1]


def test_a_silenced_segment_tells_nothing_until_its_silence_ends_and_others_do(bench):
    bench.find(segment=FR)
    bench.find(segment=DE)
    silences = {'["FR"]': T + 600}
    bench.tick(0, silences=silences)
    (told,) = bench.told(1)
    assert [alert["segment"] for alert in told["alerts"]] == [DE]
    bench.tick(601, silences=silences)
    assert [alert["segment"] for alert in bench.told(2)[-1]["alerts"]] == [FR]


@pytest.mark.parametrize("accepted", [True, False])
def test_a_drift_that_was_acknowledged_before_it_was_told_is_not_repeated(bench, accepted):
    id = bench.find()
    bench.acknowledge(id)
    if accepted:
        bench.find("acceptance")
    bench.tick(0)
    bench.tick(86_500)
    bench.tick(2 * 86_500)
    assert len(bench.told(not accepted)) == (not accepted), "the new normal is no news; what stays open is, once"


def test_a_drift_that_is_not_open_any_more_is_resolved(bench):
    ids = [bench.find(), bench.find(segment={"country": "DE"})]
    bench.tick(0, open=[])
    (fired,) = bench.told(1)
    assert [alert["findings"] for alert in fired["alerts"]] == [[id] for id in ids], "found after the monitor was seen"
    bench.tick(1, open=[OpenNow({"country": "DE"}, "")])
    bench.tick(2, open=[OpenNow({"country": "DE"}, "")])
    (resolved,) = bench.told(2)[1]["alerts"]
    assert (resolved["status"], resolved["segment"]) == ("resolved", None)


def test_what_fires_is_resolved_when_its_monitor_is_removed(bench):
    bench.find()
    bench.tick()
    bench.find(segment={"country": "DE"})
    bench.alerting.tick(T + 1, [])
    bench.alerting.tick(T + 2, [])
    fired, resolved = bench.told(2)
    assert (resolved["status"], len(resolved["alerts"])) == ("resolved", 1)
    assert resolved["alerts"][0]["fingerprint"] == fired["alerts"][0]["fingerprint"]
    assert resolved["text"] == "Resolved: fraud: the monitor was removed"


def test_overdue_labels_fire_and_their_arrival_resolves_it(bench):
    rules = {"labels_overdue": "7 days"}
    week = 7 * 86_400.0
    bench.tick(0, rules=rules, waiting_since=T - week + 10)
    bench.tick(11, rules=rules, waiting_since=T - week + 10)
    assert [one["kind"] for one in bench.told(1)] == ["labels_overdue"]
    bench.tick(20, rules=rules, waiting_since=T - 5)
    assert bench.told(2)[1]["status"] == "resolved"


def test_warnings_are_told_where_they_are_asked_for(bench):
    bench.tick(0, warning=True)
    assert bench.sent() == 0
    bench.tick(1, rules={"warnings": True}, warning=True)
    assert [one["kind"] for one in bench.told(1)] == ["warning"]


def test_a_shift_of_the_classes_is_an_alert_where_it_is_to_alarm(bench):
    bench.find("shift")
    bench.tick(mix="report")
    assert bench.sent() == 0
    bench.find("shift")
    bench.tick(1, mix="alarm")
    assert [one["kind"] for one in bench.told(1)] == ["shift"]


def test_a_server_that_dies_anywhere_tells_everything_once_under_one_id(tmp_path, receiver):
    """At every write of a tick: dies before it, dies after it; then starts again."""
    calls = ("put_document", "put")
    for death in range(12):
        bench = Bench(tmp_path / str(death), receiver)
        receiver.requests.clear()
        id = bench.find()
        count = 0

        def dying(function, bench=bench, death=death):
            def called(*args):
                nonlocal count
                count += 1
                if count == death // 2 + 1 and death % 2 == 0:
                    raise KeyboardInterrupt
                function(*args)
                if count == death // 2 + 1 and death % 2 == 1:
                    raise KeyboardInterrupt

            return called

        with pytest.MonkeyPatch.context() as patch:
            for name in calls:
                owner = bench.channels if name == "put" else bench.store
                patch.setattr(owner, name, dying(getattr(owner, name)))
            with suppress(KeyboardInterrupt):
                bench.tick()
        bench.channels.close(2)
        bench.begin()
        bench.tick(100)
        bench.tick(101)
        bench.channels.close(2)
        told = [json.loads(request.body) for request in receiver.requests]
        assert [alert["findings"] for one in told for alert in one["alerts"]] == [[id]], death
        bench.close()


def test_a_removed_monitor_leaves_nothing_behind(bench):
    bench.find()
    bench.tick()
    bench.told(1)
    bench.find()
    bench.store.remove_monitor(bench.row.id)
    bench.alerting.tick(T + 1, [])
    assert bench.store.documents("alerts") == {}
    assert bench.store.unalerted() == []


def test_a_drift_of_a_monitor_made_since_they_were_looked_at_is_not_lost(bench):
    bench.find()
    bench.alerting.tick(T, [])
    bench.tick(1)
    assert len(bench.told(1)) == 1


def test_a_damaged_state_begins_anew(bench):
    bench.store.put_document("alerts", "u1", b"\xff{")
    bench.find()
    bench.tick()
    assert len(bench.told(1)) == 1


def test_hostile_names_mention_nobody(bench):
    bench.find(segment={"country": "<!channel>"}, text="fraud (country=<!channel> @everyone): drift")
    bench.tick()
    (webhook,) = bench.told(1)
    for text in (webhook["text"], *message(webhook), webhook["alerts"][0]["annotations"]["summary"]):
        assert "<!channel>" not in text
        assert "@everyone" not in text
    assert webhook["alerts"][0]["segment"] == {"country": "<!channel>"}, "as it is, for programs"


def test_webhooks_are_signed(tmp_path, receiver, monkeypatch):
    from fourrates.alerts import verify

    monkeypatch.setenv("FOURRATES_WEBHOOK_SECRET", "secret")
    bench = Bench(tmp_path / "data", receiver)
    bench.find()
    bench.tick()
    (told,) = bench.told(1)
    (request,) = receiver.requests
    assert verify("secret", request.headers, request.body) == told["id"]
    bench.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Apprise imports
@pytest.mark.parametrize(
    "address",
    ["hook", "https://x/...", "slack://...", "exec:rm", "https://", "http://[", "unknown://x", "https://x/\r\ny"],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ValueError, match=r"address|webhook|Apprise"):
        check_channels([address])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_address_runs_a_command():
    for address in ("exec:touch x", "exec://touch", "command:x"):
        with pytest.raises(ValueError, match=r".*"):
            channel_of(address)


def test_a_monitor_with_an_address_that_is_none_is_refused(start):
    served = start()
    answer = served.http.put("/api/monitors/m", json={"alerts": {"channels": ["nowhere"]}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_channel")
    good = {"alerts": {"channels": ["https://hooks.example.org/secret"]}}
    assert served.http.put("/api/monitors/m", json=good).status_code == 201
    shown = served.http.get("/api/monitors/m").json()["config"]["alerts"]
    assert "secret" not in str(shown)
    answer = served.http.patch("/api/monitors/m", json={"alerts": shown})
    assert answer.status_code == 422, "what is shown of an address does not take its place"


@pytest.mark.slow
def test_the_test_button_tells_what_became_of_it(start, receiver):
    served = start()
    config = {"alerts": {"channels": [receiver.url, "http://127.0.0.1:9/hook"]}}
    assert served.http.put("/api/monitors/m", json=config).status_code == 201
    answer = served.http.post("/api/monitors/m/test-alert").json()
    assert [one["delivered"] for one in answer["channels"]] == [True, False]
    assert "refused" in answer["channels"][1]["problem"].lower()
    assert json.loads(receiver.requests[0].body)["kind"] == "test"
    assert receiver.requests[0].headers["webhook-id"] == answer["id"]


def stream(drifts_at=3_000, size=6_000, seed=3):
    dice = np.random.default_rng(seed)
    truth = (dice.random(size) < 0.3).astype(int)
    right = dice.random(size) < np.where(np.arange(size) < drifts_at, 0.9, 0.6)
    return truth.tolist(), np.where(right, truth, 1 - truth).tolist()


@pytest.mark.slow
def test_a_drift_in_a_real_stream_reaches_the_receiver(start, receiver):
    served = start(alert_interval=0.0)
    served.http.put("/api/monitors/fraud", json={"arl": 100_000, "alerts": {"channels": [receiver.url]}})
    truth, pred = stream()
    answer = served.http.post("/api/monitors/fraud/events", json={"y_true": truth, "y_pred": pred}).json()
    assert answer["findings"]
    receiver.wait_for(1)
    told = json.loads(receiver.requests[0].body)
    assert told["status"] == "firing"
    assert {id for alert in told["alerts"] for id in alert["findings"]} <= set(answer["findings"])
    drift = answer["findings"][0]
    assert served.http.post(f"/api/monitors/fraud/drifts/{drift}/acknowledge").json()["acknowledged"]


def episodes_of(findings):
    """The ids of each drift, of further ones and of the finding that closed them."""
    episodes, closed = [], True
    for finding in findings:
        if closed:
            episodes.append(set())
        episodes[-1].add(finding["id"])
        closed = finding["closes"]
    return episodes


def told_by(receiver):
    payloads = [json.loads(request.body) for request in receiver.requests]
    return {id for payload in payloads for alert in payload["alerts"] for id in alert["findings"]}


@pytest.mark.slow
def test_alerts_arrive_whenever_the_server_is_killed(tmp_path):
    """A real process, killed again and again: each drift is notified with its end, unless both came before a look."""
    receiver = Receiver()
    dice = np.random.default_rng(11)
    size = 4_000
    try:
        for number in range(6):
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "fourrates",
                    "serve",
                    "--port=0",
                    "--data",
                    tmp_path / "x",
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=os.environ | {"FOURRATES_SERVE_ALERT_INTERVAL": "0"},
            )
            try:
                url = process.stdout.readline().split()[2]
                with httpx.Client(base_url=url, timeout=30, transport=httpx.HTTPTransport(retries=10)) as http:
                    if number == 0:
                        config = {"arl": 20_000, "alerts": {"channels": [receiver.url]}}
                        assert http.put("/api/monitors/m", json=config).status_code == 201
                    level = 0.9 if number % 2 == 0 else 0.5
                    truth = (dice.random(size) < 0.3).astype(int)
                    pred = np.where(dice.random(size) < level, truth, 1 - truth)
                    body = {"y_true": truth.tolist(), "y_pred": pred.tolist()}
                    assert http.post("/api/monitors/m/events", json=body).status_code == 200
                    if number < 5:
                        time.sleep(dice.uniform(0, 1.2))  # then it is killed, at whatever it does
                    drifts = http.get("/api/monitors/m/drifts").json()["drifts"]
                    episodes = episodes_of(one for one in reversed(drifts) if one["kind"] == "drift" or one["closes"])
                    if number == 5:
                        assert wait_until(lambda last=episodes[-1]: last <= told_by(receiver)), "the open one"
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
                process.stdout.close()
        bodies = {}
        for request in receiver.requests:
            id = json.loads(request.body)["id"]
            assert bodies.setdefault(id, request.body) == request.body, "one id, one alert"
        told = told_by(receiver)
        assert len(told) >= 4
        assert told <= set().union(*episodes)
        for episode in episodes:
            assert episode <= told or not episode & told, "an episode that ended before anybody was notified, or all"
        ids_of = [id for body in bodies.values() for alert in json.loads(body)["alerts"] for id in alert["findings"]]
        assert len(ids_of) == len(set(ids_of)), "each finding is told under one id"
    finally:
        receiver.close()


def test_a_clock_that_was_a_year_ahead_silences_nothing(tmp_path, receiver):
    bench = Bench(tmp_path / "data", receiver, group_interval=60.0, repeat=3_600.0)
    year = 365 * 86_400.0
    bench.find()
    bench.tick(year, open=[OpenNow(None, "")], rules={"silent_after": "1 hour"})
    bench.find("recovery")
    bench.tick(600, open=[], rules={"silent_after": "1 hour"})
    bench.find()
    bench.tick(1_200, open=[OpenNow(None, "")], rules={"silent_after": "1 hour"})
    told = bench.told(3)
    assert [one["kind"] for one in told] == ["drift", "recovery", "drift"]
    assert [one["status"] for one in told] == ["firing", "resolved", "firing"]
    bench.tick(1_200 + 3_601, open=[OpenNow(None, "")], rules={"silent_after": "1 hour"})
    assert {alert["labels"]["alertname"] for alert in bench.told(4)[3]["alerts"]} == {"ClassifierDrift", "NoEvents"}
    bench.close()


def test_alerts_of_a_damaged_monitor_stay_as_they_are(bench):
    bench.find()
    bench.tick(0, open=[OpenNow(None, "")])
    assert len(bench.told(1)) == 1
    bench.begin()
    bench.alerting.tick(T + 10, [Watched(bench.row.id, "u1", "fraud", damaged=True)])
    bench.find("recovery")
    bench.tick(20, open=[])
    assert bench.told(2)[1]["status"] == "resolved"


def test_alerts_of_a_damaged_monitor_are_resolved_when_it_is_removed(bench):
    bench.find()
    bench.tick()
    bench.alerting.tick(T + 10, [Watched(bench.row.id, "u1", "fraud", damaged=True)])
    bench.alerting.tick(T + 20, [])
    assert bench.told(2)[1]["status"] == "resolved"


def test_a_finding_that_cannot_be_read_holds_up_no_other_monitor(bench):
    other = bench.store.add_monitor("other", "u2", bytes(16))
    bench.store.commit(Group(findings=[StoredFinding("bad", other.id, "drift", b"\0")]))
    bench.find()
    watched = [Watched(other.id, "u2", "other"), bench.watched(open=[OpenNow(None, "")])]
    bench.alerting.tick(T, watched)
    bench.alerting.tick(T + 1, watched)
    assert [one["monitor"] for one in bench.told(1)] == ["fraud"]
