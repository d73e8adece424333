"""Alerts as Slack's incoming webhooks want them; Mattermost, Rocket.Chat and others take the same."""

from __future__ import annotations

from fourrates.alerts.channel import Alert
from fourrates.alerts.payload import encode
from fourrates.alerts.text import message
from fourrates.alerts.webhook import Webhook


class Slack(Webhook):
    """Posts the text of each alert as ``{"text": ...}``; what would mention or notify somebody in it does nothing.

    Parameters
    ----------
    url : str
        The address of the webhook, which is its secret.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.name = f"slack{self.name.removeprefix('webhook')}"  # a webhook of the same address is another channel

    def deliver(self, alert: Alert) -> None:
        """Post it; Slack answers 200 once it has it."""
        body = {"text": "\n".join(part for part in message(alert.payload) if part), "mrkdwn": False}
        super().deliver(Alert(alert.id, encode(body), body))
