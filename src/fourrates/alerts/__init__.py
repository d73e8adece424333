"""Reliable alerts, from a spool on disk through channels that deliver them.

:class:`Spool` takes an alert, returns when it is on disk, and delivers it in the background. It retries for days and
across restarts, delivering at least once, always under the same id. :class:`Webhook` posts it as signed JSON,
:class:`PagerDuty` opens and resolves incidents, :class:`Command` runs a command, and :class:`Apprise` reaches chat and
mail. :func:`channel_of` makes them from addresses; :func:`finding_alert` makes an alert from a finding.
"""

from fourrates.alerts.address import channel_of
from fourrates.alerts.apprise import Apprise
from fourrates.alerts.channel import Channel, Failure
from fourrates.alerts.command import Command
from fourrates.alerts.pagerduty import PagerDuty
from fourrates.alerts.payload import finding_alert, stable_id
from fourrates.alerts.signature import SignatureError, sign, verify
from fourrates.alerts.spool import Spool
from fourrates.alerts.webhook import Webhook
from fourrates.disk_queue import Entry, QueueError

__all__ = [
    "Apprise",
    "Channel",
    "Command",
    "Entry",
    "Failure",
    "PagerDuty",
    "QueueError",
    "SignatureError",
    "Spool",
    "Webhook",
    "channel_of",
    "finding_alert",
    "sign",
    "stable_id",
    "verify",
]
