"""Kafka, from a topic of predictions and labels to a topic of drifts.

:class:`Monitor` keeps a watch for each partition and saves it in a :class:`Folder` with the offset up to which it has
seen the partition, in one atomic write.
"""

from fourrates.engines.kafka.address import Address
from fourrates.engines.kafka.monitor import Monitor
from fourrates.engines.kafka.store import Folder

__all__ = ["Address", "Folder", "Monitor"]
