"""What alerts say, for every kind and channel, as files to be read aloud; FOURRATES_GOLDEN=1 writes them anew."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fourrates as fr
from fourrates.alerts import PagerDuty, finding_alert
from fourrates.alerts.text import message
from fourrates.serve.alert_state import Alert, AlertItem, OpenNow
from fourrates.serve.notification import Links, notification, trial_notification

GOLDEN = Path(__file__).parent / "golden"
LINKS = Links("https://drift.example.org", "https://wiki.example.org/runbooks/{monitor}")
AT = 1_767_754_000.0  # 2026-01-07 02:46:40 UTC
NORMAL, ALARM, SINCE = {"value": 0.742, "n": 9_000}, {"value": 0.31, "n": 40}, {"value": 0.748, "n": 2_100}
FR = {"country": "FR"}
COST = "Costs about 1,300 a day (900 to 1,700)"
OVERALL = [(None, "tpr (positives caught) 0.580, normally 0.742")]
FR_NOW = "tpr (positives caught) 0.121, normally 0.690"


def finding(kind="drift", after=ALARM, segment=None, **more):
    change = {"rate": "tpr", "direction": "down" if kind == "drift" else "up", "before": NORMAL, "after": after}
    closes = kind in ("recovery", "withdrawal", "acceptance")
    times = {"time": "2026-01-07T03:04:11.250Z", "started_time": "2026-01-07T02:41:00.000Z"}
    return {"kind": kind, "segment": segment, "closes": closes, "changes": [change], **times, **more}


def item(kind="drift", ends=None, finding=None, now=(), **more):
    facts = {"fingerprint": "0123456789abcdef", "kind": kind, "starts": AT, "changed": AT, "ends": ends} | more
    return AlertItem(Alert(**facts), finding, [OpenNow(*drift) for drift in now])


def resolved(kind, **more):
    return item(ends=AT + 3_600, finding=finding(kind, SINCE), **more)


SHIFT = {"kind": "shift", "changes": [], "closes": False, "time": "2026-01-07T03:04:11.250Z"}
SHIFT |= {"before": {"value": 0.02}, "after": {"value": 0.051}}
KINDS = {
    "drift": [item(finding=finding(), now=[(None,)])],
    "drift now known": [item(finding=finding(), now=OVERALL)],
    "drift in a segment": [item(segment=FR, finding=finding(segment=FR), now=[(FR, FR_NOW)])],
    "drift carried by one segment": [item(finding=finding(), now=[*OVERALL, (FR, FR_NOW)])],
    "drift in many segments": [
        item(finding=finding(), now=[*OVERALL, (FR, FR_NOW), ({"country": "DE"},), ({"country": "IT"},)])
    ],
    "drift with its cost": [
        item(finding=finding(), now=[(None, f"{OVERALL[0][1]}\n{COST}"), (FR, f"{FR_NOW}\n{COST}")])
    ],
    "drift repeated": [item(finding=finding(), now=OVERALL, repeats=1)],
    "drift open in a segment only": [item(finding=finding("recovery", SINCE) | {"closes": True}, now=[(FR, FR_NOW)])],
    "recovery": [resolved("recovery")],
    "recovery of a segment": [resolved("recovery", segment=FR)],
    "withdrawal": [resolved("withdrawal")],
    "acceptance": [resolved("acceptance")],
    "new reference": [item(ends=AT + 3_600, finding=finding())],
    "monitor removed": [item(ends=AT + 3_600, text="the monitor was removed")],
    "class-mix shift": [item("shift", finding=SHIFT)],
    "warning": [item("warning", text="warning, a rate may be moving; no drift yet")],
    "no events": [item("silent", text="no events for more than 30 minutes")],
    "events again": [item("silent", ends=AT + 3_600, text="no events for more than 30 minutes")],
    "labels overdue": [item("labels_overdue", text="labels are overdue, predictions have waited for more than 2 days")],
    "several": [
        item(finding=finding(), now=OVERALL),
        item("silent", text="no events for more than 30 minutes", fingerprint="f2"),
    ],
    "test": None,
}


def assert_written(name, text):
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("FOURRATES_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_alerts_read_as_written(kind, receiver):
    items = KINDS[kind]
    payload = (
        trial_notification("card fraud", "t1", LINKS)
        if items is None
        else notification("card fraud", "u1", items, LINKS)
    )
    PagerDuty("k" * 32, receiver.url).deliver(payload)
    pages = [json.loads(request.body) for request in receiver.requests]
    title, body = message(payload)
    parts = {
        "Mail": f"Subject: {title}\n\n{body}",
        "PagerDuty": "\n".join(json.dumps(page, indent=2) for page in pages),
        "Webhook": json.dumps(
            {key: payload.get(key) for key in ("kind", "status", "thread", "text", "links")}, indent=2
        ),
    }
    written = "".join(f"=== {name}\n{text}\n\n" for name, text in parts.items())
    assert_written(kind.replace(" ", "-"), written)
    shown = title + body
    assert payload["id"] not in shown or items is None
    assert "event " not in shown, "no event numbers"


def shares(value, n):
    return fr.findings.Share.of(value * n, n)


def of_a_detector(kind, after=0.31, known=True):
    before = shares(0.742, 9_000)
    direction = "down" if kind in ("drift", "further", "confirmation") else "up"
    levels = {"before": before, "after": shares(after, 40)} if known else {}
    change = fr.RateChange("tpr", direction, after, 0.4, 0.742, 40, **levels)
    if kind in ("drift", "further"):
        counts, further = ((1, 0), (0, 1)), kind == "further"
        return fr.Drift(at=5_079, since=5_000, changes=(change,), confusion=counts, started=5_010, further=further)
    closes = kind in ("recovery", "withdrawal", "acceptance")
    return fr.Finding(kind=kind, at=7_130, changes=(change,), closes=closes)


LIBRARY = {
    "drift": of_a_detector("drift"),
    "further drift": of_a_detector("further", 0.2),
    "drift of a detector that estimates no rate": of_a_detector("drift", known=False),
    "confirmation": of_a_detector("confirmation", 0.28),
    "improvement": of_a_detector("improvement", 0.6),
    "recovery": of_a_detector("recovery", 0.75),
    "withdrawal": of_a_detector("withdrawal", 0.75),
    "acceptance": of_a_detector("acceptance", 0.31),
}


def test_alerts_of_watch_and_of_the_library_read_as_written():
    texts = []
    for name, one in LIBRARY.items():
        times = {"time": np.datetime64("2026-01-07T03:04:11"), "started_time": np.datetime64("2026-01-07T02:41:00")}
        for finding in (one, replace(one, **times)):
            text = finding_alert(finding, stream="card fraud", origin="x", utc=True)["text"]
            texts.append(f"=== {name}\n{text}\n\n")
    assert_written("of-the-library", "".join(texts))


@pytest.mark.parametrize("kind", ["recovery", "withdrawal", "acceptance"])
def test_what_closes_a_drift_closes_its_thread(kind, receiver):
    for one in (KINDS["drift"], KINDS[kind]):
        payload = notification("card fraud", "u1", one, LINKS)
        PagerDuty("k" * 32, receiver.url).deliver(payload)
    opened, closed = [json.loads(request.body) for request in receiver.requests]
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"]
