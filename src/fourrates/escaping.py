"""Names that came with the data, written where they could do something: on a terminal, in a spreadsheet.

A stream, a label or a file may be called anything. On a terminal an escape sequence would be obeyed; in a spreadsheet a
cell that begins like a formula would be run. Here both are made harmless and stay readable.
"""

from __future__ import annotations

import re
import unicodedata

JOINERS = "\u200c\u200d"  # parts of words and emoji, which do nothing else
# Where a cell begins: at its start, and behind what a spreadsheet of another language, or without an eye for quotes,
# takes for its end. The second four are full-width, which some spreadsheets take for the first.
FORMULA = re.compile(r"(?:^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=[=+\-@\uff1d\uff0b\uff0d\uff20]))")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def printable(text: str) -> str:
    r"""The text with every character that a terminal would obey, or that turns the line around, shown as its escape.

    Examples
    --------
    >>> from fourrates.escaping import printable
    >>> print(printable("\x1b[31mred"), printable("naïve café"))
    \x1b[31mred naïve café
    """
    if text.isprintable():
        return text
    return "".join(sign if _is_harmless(sign) else sign.encode("unicode_escape").decode() for sign in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or character in JOINERS or unicodedata.category(character) == "Zs"


def shortened(text: str, most: int = 100) -> str:
    """The text as :func:`printable` has it, its end left out where it is too long to be read.

    Examples
    --------
    >>> from fourrates.escaping import shortened
    >>> shortened("a" * 1000, most=10)
    'aaaaaaaaa…'
    """
    shown = printable(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def defused(cell: str) -> str:
    """The text as a cell of a CSV file that no spreadsheet takes for a formula: with an apostrophe in front of each.

    Examples
    --------
    >>> from fourrates.escaping import defused
    >>> defused("=1+1"), defused("-5"), defused("north"), defused("south;=1+1")
    ("'=1+1", '-5', 'north', "south;'=1+1")
    """
    return cell if NUMBER.fullmatch(cell) else FORMULA.sub("'", cell)
