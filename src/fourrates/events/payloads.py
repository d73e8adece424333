"""Columns from the logs of model servers, requests and responses by the protocols V1 and V2, and Seldon's own.

V1 has rows (``instances``, ``predictions``) or an object of columns (``inputs``, ``outputs``); V2 has tensors, whose
first dimension is the row; Seldon has one matrix (``data``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fourrates.events.rows import InputError
from fourrates.labels import Labels

ROWS = ("predictions", "instances", "outputs", "inputs")
DIMENSIONS = 8  # of a tensor
MOST_CELLS = 1 << 22  # rows times names, for rows that may lack some of them


def columns_of(payload: Any) -> dict[str, list[Any]]:
    """The columns of a payload by name; rows without names make one column, with the payload's name for them.

    Examples
    --------
    >>> columns_of({"instances": [{"country": "FR"}, {"country": "DE"}]})
    {'country': ['FR', 'DE']}
    >>> columns_of({"outputs": [{"name": "label", "datatype": "INT64", "shape": [2, 1], "data": [1, 0]}]})
    {'label': [[1], [0]]}
    >>> columns_of({"data": {"names": ["no", "yes"], "ndarray": [[0.9, 0.1]]}})
    {'data': [[0.9, 0.1]], 'no': [0.9], 'yes': [0.1]}
    """
    if isinstance(payload, dict) and isinstance(data := payload.get("data"), dict):
        return _of_seldon(data)
    key = next((key for key in ROWS if key in payload), None) if isinstance(payload, dict) else None
    if key is None:
        raise InputError(f"a payload has one of {', '.join(ROWS)} or an object data; this one has none")
    content = payload[key]
    if isinstance(content, dict):
        return {str(name): _listed(name, values) for name, values in content.items()}
    rows = _listed(key, content)
    if rows and all(isinstance(row, dict) for row in rows):
        if all("datatype" in row for row in rows):
            return {str(tensor.get("name")): _of_tensor(tensor) for tensor in rows}
        names = dict.fromkeys(str(name) for row in rows for name in row)
        if len(names) * len(rows) > MOST_CELLS:  # few bytes could ask for gigabytes
            raise InputError(f"{len(rows):,} rows with {len(names):,} different names")
        return {name: [row.get(name) for row in rows] for name in names}
    return {key: rows}


def _listed(name: Any, values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise InputError(f"{name!s:.80} is not a list of values")
    return values


def _of_tensor(tensor: Mapping[str, Any]) -> list[Any]:
    name, shape = f"the tensor {tensor.get('name')!s:.80}", tensor.get("shape")
    if "data" not in tensor:
        raise InputError(f"{name} is binary: log tensors as JSON")
    return _in_shape(name, _listed(name, tensor["data"]), shape)


def _in_shape(name: str, data: list[Any], shape: Any) -> list[Any]:
    """The rows of a tensor, whose data is flat or nested."""
    if not isinstance(shape, list) or not 0 < len(shape) <= DIMENSIONS or not all(map(_is_size, shape)):
        raise InputError(f"{name} has the shape {shape!s:.80}")
    rows, width = shape[0], math.prod(shape[1:])
    if len(shape) > 1 and data and not isinstance(data[0], list) and len(data) == rows * width:
        return [data[start : start + width] for start in range(0, len(data), width)]
    if len(data) != rows:
        raise InputError(f"{name} has {len(data):,} values, but its shape {shape!s:.80} has {rows * width:,}")
    return data


def _is_size(size: Any) -> bool:
    return type(size) is int and 0 <= size < 1 << 31


def _of_seldon(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    tensor = data.get("tensor")
    if isinstance(tensor, dict):
        rows = _in_shape("data.tensor", _listed("data.tensor.values", tensor.get("values")), tensor.get("shape"))
    else:
        rows = _listed("data.ndarray", data.get("ndarray"))
    names = [str(name) for name in _listed("data.names", data.get("names") or [])]
    whole = {"data": rows}
    if not rows or not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return whole
    return whole | {name: [row[place] for row in rows] for place, name in enumerate(names)}


def predictions(columns: Mapping[str, Sequence[Any]], name: str | None, labels: Labels) -> tuple[str, list[Any]]:
    """The predictions, as ``pred`` (labels) or ``score``, from the named column, or the first one.

    A row of one value is that value. A row with a number for each label holds probabilities in the order of `labels`.
    With two labels, the score is the positive one's; with more, the prediction is the likeliest.

    Examples
    --------
    >>> from fourrates.labels import Labels
    >>> predictions({"predictions": [[0.9, 0.1], [0.2, 0.8]]}, None, Labels(["ok", "fraud"]))
    ('score', [0.1, 0.8])
    >>> predictions({"predictions": [[1], [0]]}, None, Labels([0, 1]))
    ('pred', [1, 0])
    """
    if not columns or (name is not None and name not in columns):
        raise InputError(f"there is no output {name!s:.80}; there are {', '.join(columns)!s:.200}")
    values, known = scalars(columns[next(iter(columns)) if name is None else name]), labels.given
    if not values or not all(_is_distribution(value, len(known)) for value in values):
        return "pred", values
    if len(known) == 2:
        return "score", [value[known.index(labels.values[1])] for value in values]
    return "pred", [known[max(range(len(known)), key=value.__getitem__)] for value in values]


def scalars(values: Sequence[Any]) -> list[Any]:
    """The values, with each row of one value unwrapped."""
    return [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]


def row_ids(id: str, rows: int) -> list[str]:
    """The ids of a request's rows, its own id, or ``ID/0``, ``ID/1`` and so on for several."""
    return [id] if rows == 1 else [f"{id}/{row}" for row in range(rows)]


def _is_distribution(value: Any, size: int) -> bool:
    return isinstance(value, list) and len(value) == size and all(type(number) in (int, float) for number in value)
