"""Make names from the data safe to print on a terminal or write into a spreadsheet.

A segment, a label or a file may have any name. A terminal would obey an escape sequence; a spreadsheet would run a cell
that begins like a formula. Here both are made harmless and stay readable.
"""

from __future__ import annotations

import re
import unicodedata

JOINERS = "\u200c\u200d"  # parts of words and emoji, otherwise harmless
# Beginnings of a cell, at the start and after characters that a spreadsheet of another language, or without regard for
# quotes, takes for its end. The second four are full-width, which some spreadsheets take for the first.
FORMULA = re.compile(r"(?:^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=[=+\-@\uff1d\uff0b\uff0d\uff20]))")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def printable(text: str) -> str:
    r"""Escape every character that a terminal would obey, or that reverses the line.

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
    """Escape the text as :func:`printable` does, and shorten it if it is too long to read.

    Examples
    --------
    >>> from fourrates.escaping import shortened
    >>> shortened("a" * 1000, most=10)
    'aaaaaaaaa…'
    """
    shown = printable(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def defused(cell: str) -> str:
    """Put an apostrophe before everything in a CSV cell that a spreadsheet would take for a formula.

    Examples
    --------
    >>> from fourrates.escaping import defused
    >>> defused("=1+1"), defused("-5"), defused("north"), defused("south;=1+1")
    ("'=1+1", '-5', 'north', "south;'=1+1")
    """
    return cell if NUMBER.fullmatch(cell) else FORMULA.sub("'", cell)
