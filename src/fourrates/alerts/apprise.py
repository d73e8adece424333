"""Alerts to chat, mail and the like, by way of Apprise (``pip install 'fourrates[alerts]'``)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from fourrates.alerts.channel import Failure, Impatient
from fourrates.alerts.text import message
from fourrates.lazy import install


class Apprise:
    """Sends each alert's text to the services that Apprise knows, named by its URLs.

    Parameters
    ----------
    urls : str or iterable of str
        Such as ``slack://...``, ``mailto://...``: https://github.com/caronc/apprise/wiki lists them.
    deadline : float
        Seconds for all of them.
    """

    def __init__(self, urls: str | Iterable[str], *, deadline: float = 30.0) -> None:
        self.urls = [urls] if isinstance(urls, str) else list(urls)
        self.deadline = deadline
        try:
            import apprise
        except ImportError:
            raise ValueError(f"this channel needs Apprise: {install('alerts')}") from None
        self._sender = apprise.Apprise()
        for url in self.urls:
            if not self._sender.add(url):
                raise ValueError(f"Apprise does not know the address {url.partition(':')[0]}:...")
        # The addresses hold tokens and passwords, which have no place in messages.
        kinds = ", ".join(dict.fromkeys(url.partition(":")[0] for url in self.urls))
        self.name = f"notify {kinds} {hashlib.sha256(' '.join(self.urls).encode()).hexdigest()[:8]}"
        self._caller = Impatient()

    def deliver(self, alert: Mapping[str, Any]) -> None:
        """Send it; Apprise answers false, or None, if a service did not accept it."""
        title, text = message(alert)
        kind = "success" if alert.get("status") == "resolved" else "warning"
        is_sent = self._caller.call(
            lambda: self._sender.notify(title=title, body=text or title, body_format="text", notify_type=kind),
            self.deadline,
            "Apprise",
        )
        if not is_sent:
            raise Failure("a service did not accept it")

    def close(self) -> None:
        """Nothing can be broken off; the thread ends with the process."""
