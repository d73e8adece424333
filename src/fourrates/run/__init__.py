"""A detector over batches of events, one stream or many: what was found, when and where, before and after."""

from fourrates.run.found import Found, FoundShift, Matrix, Place
from fourrates.run.run import Run
from fourrates.run.streams import MAX_STREAMS

__all__ = ["MAX_STREAMS", "Found", "FoundShift", "Matrix", "Place", "Run"]
