"""Events on their way to a monitor: ``fr.Client(url, token).log("fraud", y_true=..., y_pred=...)``.

:meth:`Client.log` takes predictions, or labels, and returns at once. Within a second they are in a queue on disk, from
which a thread sends them, in order, until the server has acknowledged each row. Every batch has its own key, so
that one sent twice is counted once. Standard library only.
"""

from fourrates.client.client import Client

__all__ = ["Client"]
