"""Names from data in sentences for people: neither markup, nor mentions, nor terminal escapes.

A stream may be called ``<!channel>`` or hold an escape sequence. In sentences such characters are replaced by others
that look alike and do nothing; the payload has the name as it is in a field of its own.
"""

from __future__ import annotations

import re

LONGEST = 200  # characters of a name in a sentence
ALIKE = str.maketrans(
    {
        "<": "\u2039",  # <!channel>
        ">": "\u203a",
        "@": "\uff20",  # @everyone
        "*": "\u2217",
        "`": "\u02cb",
        "~": "\u223c",
        "|": "\u00a6",
        "[": "(",  # [text](link)
        "]": ")",
    }
)


def plain(name: object) -> str:
    r"""A name as a sentence may hold it.

    Examples
    --------
    >>> from fourrates.alerts.text import plain
    >>> ascii(plain("<!channel>"))
    "'\\u2039!channel\\u203a'"
    >>> plain("model_a")
    'model_a'
    """
    text = defused(str(name).replace("\n", "\ufffd"))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def defused(text: str) -> str:
    """A text of several lines without anything that a terminal, a chat or Markdown would act upon."""
    text = "".join(letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text).translate(ALIKE)
    return re.sub(r"(?<!\w)_|_(?!\w)", "\u02cd", text)  # _emphasis_, but not a_b
