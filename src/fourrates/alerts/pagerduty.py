"""Alerts for PagerDuty's Events API v2, whose trigger opens an incident and resolve closes the same one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from fourrates.alerts.payload import encode
from fourrates.alerts.text import LINKS, defused
from fourrates.alerts.webhook import Webhook

EVENTS = "https://events.pagerduty.com/v2/enqueue"
MILD = ("ClassMixShift", "ClassifierWarning")
LONGEST = 1_024  # characters of a summary


class PagerDuty(Webhook):
    """Sends an event for each alert of a notification; an alert has the same key while it fires and when it resolves.

    Parameters
    ----------
    key : str
        The integration key of a service.
    url : str
        The address of the API.
    """

    def __init__(self, key: str, url: str = EVENTS) -> None:
        super().__init__(url)
        self.key = key
        self.name = f"pagerduty {hashlib.sha256(key.encode()).hexdigest()[:8]}"

    def deliver(self, alert: Mapping[str, Any]) -> None:
        """Post the events; PagerDuty counts one with a known key once, so that all can be sent again."""
        for event in self._events(alert):
            self._send(alert["id"], encode(event))

    def _events(self, payload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        links = payload.get("links") or {}
        alone = {
            "status": payload.get("status", "firing"),
            "fingerprint": payload.get("thread") or payload["id"],
            "annotations": {"summary": str(payload.get("text", ""))},
            "labels": {"monitor": payload.get("stream", "")},
        }
        for item in payload.get("alerts") or [alone]:
            summary, _, details = defused(item["annotations"]["summary"]).partition("\n")
            event: dict[str, Any] = {
                "routing_key": self.key,
                "event_action": "resolve" if item["status"] == "resolved" else "trigger",
                "dedup_key": item["fingerprint"],
            }
            if event["event_action"] == "trigger":
                mild = item["labels"].get("alertname") in MILD or payload.get("kind") == "test"
                event["client"] = "fourrates"
                event["payload"] = {
                    "summary": summary[:LONGEST],
                    "source": item["labels"]["monitor"] or "fourrates",
                    "severity": "warning" if mild else "error",
                    "custom_details": details,
                }
                event["links"] = [
                    {"href": links[name], "text": text} for name, text in LINKS.items() if links.get(name)
                ]
            yield event
