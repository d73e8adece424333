"""The words of alerts for rates, times and places, with names from data made harmless.

A stream may be called ``<!channel>`` or hold an escape sequence. In sentences, harmless lookalikes replace such
characters; the payload has the unchanged name in a separate field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 200  # characters of a name in a sentence
NAMED = 2  # rates in a sentence
QUOTED = 15  # observations from which on an interval is worth a word
MEANINGS = {"tpr": "positives caught", "tnr": "negatives correctly passed"}
MOVED = {"down": "fell", "up": "rose"}
UNKNOWN = ", how far is not yet known"
LINKS = {"look": "Look", "acknowledge": "Acknowledge", "runbook": "Runbook"}
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


def rate_in_words(rate: str) -> str:
    """A rate with its meaning."""
    kind, _, label = rate.partition(":")
    if label:
        return f"{kind} of {plain(label)}"
    return f"{plain(rate)} ({MEANINGS[rate]})" if rate in MEANINGS else plain(rate)


def rate_now(rate: str, state: Mapping[str, Any], direction: str | None = None) -> str:
    """A rate now against normal; of too few observations its interval, or which way it moved."""
    now, normal = state.get("now") or {}, state.get("normal") or {}
    usual = f", normally {normal['value']:.3f}" if normal.get("n") else ""
    n = now.get("n") or 0
    if n and n >= state["enough"]:
        return f"{rate_in_words(rate)} {now['value']:.3f}{usual}"
    if n >= QUOTED:
        return f"{rate_in_words(rate)} between {now['lower']:.3f} and {now['upper']:.3f}{usual}"
    return f"{rate_in_words(rate)} {MOVED.get(direction or '', 'moved')}{usual.replace(', normally', ' from')}{UNKNOWN}"


def rates_now(states: Mapping[str, Mapping[str, Any]], directions: Mapping[str, str]) -> str:
    """The first rates of a drift."""
    words = [rate_now(rate, state, directions.get(rate)) for rate, state in [*states.items()][:NAMED]]
    return "; ".join(words) + (f" and {len(states) - NAMED:,} more" if len(states) > NAMED else "")


def rates_then(changes: Sequence[Mapping[str, Any]], kind: str) -> str:
    """The rates of a finding as it reported them."""
    words = []
    for change in changes[:NAMED]:
        before, after = change.get("expected"), change.get("statistic")  # of a detector that knows no levels
        if change.get("before") and change.get("after"):
            before, after = change["before"]["value"], change["after"]["value"]
        name, moved = rate_in_words(change["rate"]), MOVED.get(change["direction"], "moved")
        if before is None or after is None:
            words.append(f"{name} {moved}")
        elif kind == "drift":
            words.append(f"{name} {moved} from {before:.3f} to about {after:.3f}")
        elif kind in ("withdrawal", "acceptance"):
            words.append(f"{name} {after:.3f} since the alarm, {before:.3f} before")
        else:
            words.append(f"{name} {after:.3f}")
    return "; ".join(words) + (f" and {len(changes) - NAMED:,} more" if len(changes) > NAMED else "")


def segment_in_words(segment: Mapping[str, Any] | None) -> str:
    """The values that make a segment."""
    parts = [(str(name), str(value)) for name, value in (segment or {}).items()]
    return plain(
        ", ".join(value if value.lower().startswith(name.lower()) else f"{name} {value}" for name, value in parts)
    )


def minute(time: str | None) -> str:
    """A time as ISO 8601 has it, to the minute, with its zone."""
    if not time:
        return ""
    zone = " UTC" if time.endswith("Z") else ""
    return plain(time[:16].replace("T", " ")) + zone


def since(started: str, found: str) -> str:
    """The start and the detection; on the same day the date is given once."""
    if not found:
        return ""
    if not started:
        return f"Found {found}"
    if started[:10] == found[:10] and started[10:11] == " ":
        started, found = started.removesuffix(" UTC"), found[11:]
    return f"Since about {started}, found {found}"


def message(payload: Mapping[str, Any]) -> tuple[str, str]:
    """The first line of an alert, and the rest with its links, for chat, mail and pagers."""
    first, _, rest = defused(str(payload.get("text", ""))).partition("\n")
    links = payload.get("links") or {}
    shown = [f"{name}: {links[key]}" for key, name in LINKS.items() if links.get(key)]
    return first, "\n".join([*([rest] if rest else []), *shown])
