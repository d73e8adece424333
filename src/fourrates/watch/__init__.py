"""Watch batches of events, overall or by segment, for findings and the rates now."""

from fourrates.watch.now import Deployment, Now, OpenDrift
from fourrates.watch.segments import MAX_SEGMENTS
from fourrates.watch.watch import Watch

__all__ = ["MAX_SEGMENTS", "Deployment", "Now", "OpenDrift", "Watch"]
