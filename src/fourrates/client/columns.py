"""What is logged, as columns of JSON."""

from __future__ import annotations

import json
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Kind = Literal["predictions", "events", "labels"]
ORDER: tuple[Kind, ...] = ("predictions", "events", "labels")  # a label never overtakes what it belongs to


def kind_of(given: Mapping[str, Any]) -> Kind:
    """What a call of log is about."""
    predicted = "y_pred" in given or "score" in given
    if "y_true" in given and predicted:
        return "events"
    if not predicted and "y_true" not in given:
        raise ValueError("log needs y_true, y_pred or score")
    if "id" not in given:
        alone = "a label" if not predicted else "a prediction"
        raise ValueError(f"{alone} alone needs an id, by which it is joined with the other")
    return "predictions" if predicted else "labels"


def as_list(name: str, values: Any, length: int | None = None) -> list[Any]:
    """A column as a list; one value stands for itself, or for as many as the other columns have."""
    for method in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas, polars, Arrow
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, list | tuple | range | deque):
        return list(values)
    if isinstance(values, Mapping | set | frozenset):
        raise TypeError(f"{name} must be a value, a list or an array, not {type(values).__name__}")
    return [values] * (1 if length is None else length)


def encoded(name: str, values: list[Any], start: int, number: int) -> str:
    """So many values of a column as JSON, without its brackets."""
    values = values[start : start + number]
    try:
        return json.dumps(values, allow_nan=False, default=_plain)[1:-1]
    except (TypeError, ValueError):
        for position, value in enumerate(values, start):
            try:
                json.dumps(value, allow_nan=False, default=_plain)
            except (TypeError, ValueError):
                raise ValueError(f"{name} {value!r} at position {position} cannot be sent as JSON") from None
        raise


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "item"):  # a scalar of NumPy
        return value.item()
    raise TypeError


def body_of(chunks: Sequence[list[str]], columns: Sequence[str], segments: Sequence[str]) -> bytes:
    """The chunks of one stream as a body: columns of JSON, put together as text."""
    joined = [f"[{', '.join(parts)}]" for parts in zip(*chunks, strict=True)]
    parts = [f"{json.dumps(name)}: {text}" for name, text in zip(columns, joined, strict=False)]
    if segments:
        named = zip(segments, joined[len(columns) :], strict=True)
        parts.append(f'"by": {{{", ".join(f"{json.dumps(name)}: {text}" for name, text in named)}}}')
    return f"{{{', '.join(parts)}}}".encode()
