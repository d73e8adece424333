"""Addresses of channels, each a text with the kind of channel and the destination."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from fourrates.alerts.apprise import Apprise
from fourrates.alerts.channel import Channel
from fourrates.alerts.command import Command
from fourrates.alerts.pagerduty import PagerDuty
from fourrates.alerts.webhook import Webhook

SLACK_HOST = "hooks.slack.com"  # whose addresses Apprise knows
COMMAND = "exec:"
PAGERDUTY = re.compile(r"pagerduty://(\w{32})/?")  # all else is Apprise's


def channel_of(address: str, commands: bool = False) -> Channel:
    """The channel of an address, or a ValueError. The variable FOURRATES_WEBHOOK_SECRET, if set, signs webhooks.

    Parameters
    ----------
    address : str
        ``https://...`` is a webhook, ``pagerduty://KEY`` opens and resolves incidents, ``exec:COMMAND`` runs a command.
        All else is for Apprise, such as ``mailto://...`` and ``https://hooks.slack.com/...``.
    commands : bool
        Whether commands are allowed; not if others may write addresses, who could then run anything.

    Examples
    --------
    >>> from fourrates.alerts import channel_of
    >>> type(channel_of("https://example.org/hook")).__name__
    'Webhook'
    """
    if address.endswith("..."):
        raise ValueError(f"address {address!r:.200} is a masked one, without its secret parts")
    if commands and address.startswith(COMMAND):
        return Command(address.removeprefix(COMMAND))
    if address.startswith(("http://", "https://")):
        try:
            host = urlsplit(address).hostname
        except ValueError as error:
            raise ValueError(f"address {address!r:.200}: {error}") from None
        secret = os.environ.get("FOURRATES_WEBHOOK_SECRET") or None
        return Apprise(address) if host == SLACK_HOST else Webhook(address, secret=secret)
    if key := PAGERDUTY.fullmatch(address):
        return PagerDuty(key[1])
    if "://" not in address:
        raise ValueError(f"address {address!r:.200} does not begin with https:// or the name of a service and ://")
    return Apprise(address)
