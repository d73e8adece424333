"""Read files, frames and pipes as batches of events.

:func:`read` takes a path (CSV, TSV, JSON lines, Parquet, Arrow IPC; plain or compressed), a glob, a folder, ``"-"`` for
the standard input, several of these, a data frame, arrays, or an iterator of pairs. It gives :class:`Events`, batches
of coded pairs, with times and keys if there are such columns. One batch is in memory at a time. :class:`Tail` does the
same for lines still arriving, :class:`Follower` reads them from a file that grows and is rotated, and :func:`joined`
takes labels from a separate source.

Columns that are not named are inferred from common names; `say` receives a message about each choice.
"""

from typing import TYPE_CHECKING

from fourrates.events.batch import Batch
from fourrates.events.door import Columns
from fourrates.events.rows import BAD, Bad, InputError, NoColumn
from fourrates.io.events import Events, Predictions, read
from fourrates.io.sources import paths
from fourrates.lazy import importer

if TYPE_CHECKING:
    from fourrates.io.follow import Follower, Piece, Position
    from fourrates.io.history import History
    from fourrates.io.late import Joined, joined
    from fourrates.io.tail import Tail

__all__ = [
    "BAD",
    "Bad",
    "Batch",
    "Columns",
    "Events",
    "Follower",
    "History",
    "InputError",
    "Joined",
    "NoColumn",
    "Piece",
    "Position",
    "Predictions",
    "Tail",
    "joined",
    "paths",
    "read",
]

__getattr__ = importer(
    __name__,
    {
        "Follower": "follow",
        "History": "history",
        "Joined": "late",
        "Piece": "follow",
        "Position": "follow",
        "Tail": "tail",
        "joined": "late",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
