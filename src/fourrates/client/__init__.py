"""Events on their way to a monitor: ``fr.Client(url, token).log("fraud", y_true=..., y_pred=...)``.

:meth:`Client.log` takes what was predicted, or what turned out to be true, and returns at once. A thread sends batches;
while the server is away they lie in a folder, and go out in order when it is back. Every batch has a key of its own, so
that one sent twice is counted once. Standard library only, and nothing is imported before it is needed.
"""

from fourrates.client.client import Client
from fourrates.client.model import WatchedModel

__all__ = ["Client", "WatchedModel"]
