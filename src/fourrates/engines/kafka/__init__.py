"""Kafka: a topic of predictions and labels in, a topic of drifts out.

:class:`Monitor` keeps one :class:`~fourrates.Bank` for each partition and saves it with the offset up to which it has
seen the partition, in one atomic write. :class:`Source` is its lower half, for those who keep their own state: batches
of events with their positions. :class:`Folder` and :class:`Database` are where states are kept.
"""

from fourrates.engines.kafka.address import Address
from fourrates.engines.kafka.chunk import Chunk, RejectedMessage
from fourrates.engines.kafka.monitor import Monitor
from fourrates.engines.kafka.reader import Reader
from fourrates.engines.kafka.source import Source
from fourrates.engines.kafka.store import Claim, Database, Fenced, Folder, Store

__all__ = [
    "Address",
    "Chunk",
    "Claim",
    "Database",
    "Fenced",
    "Folder",
    "Monitor",
    "Reader",
    "RejectedMessage",
    "Source",
    "Store",
]
