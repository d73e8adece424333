"""Alerts that arrive: a spool on disk, and the channels that carry what lies in it.

:class:`Spool` takes an alert, returns when it is on disk, and delivers it in the background: again and again for days,
across restarts, at least once, always under the same id. :class:`Webhook` posts it as signed JSON, :class:`Slack`
as Slack wants it, :class:`PagerDuty` opens and resolves incidents, :class:`Command` gives it to a command,
:class:`Apprise` to chat and mail; :func:`channel_of` makes them from addresses. :func:`finding_alert` makes an alert
from a finding.
"""

from fourrates.alerts.address import channel_of
from fourrates.alerts.apprise import Apprise
from fourrates.alerts.channel import Alert, Channel, Failure
from fourrates.alerts.command import Command
from fourrates.alerts.pagerduty import PagerDuty
from fourrates.alerts.payload import finding_alert, stable_id
from fourrates.alerts.signature import SignatureError, sign, verify
from fourrates.alerts.spool import Spool
from fourrates.alerts.webhook import Slack, Webhook
from fourrates.disk_queue import Entry, QueueError

__all__ = [
    "Alert",
    "Apprise",
    "Channel",
    "Command",
    "Entry",
    "Failure",
    "PagerDuty",
    "QueueError",
    "SignatureError",
    "Slack",
    "Spool",
    "Webhook",
    "channel_of",
    "finding_alert",
    "sign",
    "stable_id",
    "verify",
]
