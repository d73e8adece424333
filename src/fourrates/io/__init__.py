"""Files, frames and pipes to batches of events.

:func:`read` takes a path (CSV, TSV, JSON lines, Parquet, Arrow IPC; plain or compressed), a glob, a folder, ``"-"`` for
the standard input, several of these, a data frame, arrays, or an iterator of pairs, and gives :class:`Events`: batches
of coded pairs, with a time and a key each where such columns are named. One batch is in memory at a time, whatever the
size. :class:`Tail` does the same for lines that are still arriving, which :class:`Follower` takes from a file that
grows and is rotated; :func:`joined` for labels in a place of their own.

Columns that are not named are guessed from common names, and what was guessed is said through `say`.
"""

from typing import TYPE_CHECKING

from fourrates.events.batch import Batch
from fourrates.events.door import Columns
from fourrates.events.rows import BAD, Bad, InputError, NoColumn
from fourrates.io.events import Events, read
from fourrates.io.lines import MAX_LINE as MAX_LINE
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
