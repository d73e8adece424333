"""Messages of plain JSON, many at a time, by compiled code: no Python object for each event.

A plain message is an object whose fields in question hold numbers, literals and strings without a backslash, or lists
of as many of them; labels are written as expected. Anything else is not read here: the caller reads it value by value,
and finds out what is wrong. Both ways give the same events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.kernel import json_columns

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint16]

SPELLINGS = ("0", "1", "false", "true", "0.0", "1.0", '"0"', '"1"', '"false"', '"true"')  # of labels, besides their own
MOST_FIELDS = 30
MOST_TOKENS = 255


@dataclass(frozen=True, slots=True)
class Plain:
    """Events of messages.

    Attributes
    ----------
    truths, guesses : arrays of uint16
        Class codes.
    others : dict
        The other fields: an array of int64 where all values are integers of up to 18 digits, a list otherwise.
    rows : array of int32
        How many events each message has.
    """

    truths: Codes
    guesses: Codes
    others: dict[str, Any]
    rows: npt.NDArray[np.int32]


class PlainReader:
    """Reads plain messages.

    Parameters
    ----------
    truth, guess : str
        The fields of labels.
    others : sequence of str
        Further fields to read.
    labels : iterable of objects
        The labels.
    code : callable
        From a value to the code of the label that it stands for, or a negative number; it decides which spellings of
        labels are read here.
    """

    def __init__(
        self, truth: str, guess: str, others: Sequence[str], labels: Sequence[Any], code: Callable[[Any], int]
    ) -> None:
        self._fields = list(dict.fromkeys([truth, guess, *others]))
        self._truth, self._guess, self._others = truth, guess, list(dict.fromkeys(others))
        self._names, self._edges = _joined([name.encode("utf-8", "surrogatepass") for name in self._fields])
        written = [json.dumps(label, ensure_ascii=False) for label in labels if type(label) in (str, int, float, bool)]
        spelled = {text: code(json.loads(text)) for text in dict.fromkeys([*written, *SPELLINGS])}
        known = {text: code for text, code in spelled.items() if code >= 0}
        self._tokens, self._token_edges = _joined([text.encode("utf-8", "surrogatepass") for text in known])
        self._codes = np.array([*known.values()], np.uint16)
        self.is_able = len(self._fields) <= MOST_FIELDS and 0 < len(known) <= MOST_TOKENS and all(self._fields)

    def read(self, texts: list[bytes | None]) -> Plain | None:
        """The events of messages, or None if not all of them are plain."""
        if not self.is_able or None in texts:
            return None
        room = sum(map(len, texts)) + len(texts) + 2  # type: ignore[arg-type]
        out, filled = np.empty((len(self._fields), room), np.uint8), np.empty(len(self._fields), np.int64)
        rows = np.empty(len(texts), np.int32)
        found = json_columns.gather(texts, self._names, self._edges, out, filled, rows)
        if found < 0 or (found and not _is_utf8(texts)):
            return None
        columns = {name: out[i, : filled[i]] for i, name in enumerate(self._fields)}
        size = int(rows.sum())
        truths, guesses = (self._labels(columns[name], size) for name in (self._truth, self._guess))
        if truths is None or guesses is None:
            return None
        others = {name: _values(columns[name], size) for name in self._others}
        if any(column is None for column in others.values()):
            return None
        return Plain(truths, guesses, others, rows)

    def _labels(self, column: npt.NDArray[np.uint8], size: int) -> Codes | None:
        tokens = np.empty(size, np.uint8)
        if json_columns.label_codes(column, self._tokens, self._token_edges, tokens) != size:
            return None
        found: Codes = self._codes[tokens]
        return found


def _joined(parts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Texts one after another, and where each begins and ends."""
    return np.frombuffer(b"".join(parts) or b"\0", np.uint8), np.cumsum([0, *map(len, parts)]).astype(np.int32)


def _values(column: npt.NDArray[np.uint8], size: int) -> Any:
    """The values of a list of JSON; None if it is not one of this length."""
    whole = np.empty(size, np.int64)
    if json_columns.integers(column, whole) == size:
        return whole
    try:
        found = json.loads(column.tobytes())
    except (ValueError, RecursionError):
        return None
    return found if len(found) == size else None


def _is_utf8(texts: list[bytes | None]) -> bool:
    """Whether all of them are, as far as JSON asks for it."""
    try:
        for text in texts:
            text.decode("utf-8", "surrogatepass")  # type: ignore[union-attr]
    except UnicodeDecodeError:
        return False
    return True
