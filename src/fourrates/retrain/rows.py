"""Rows of any table a model accepts (arrays, pandas and polars frames, sparse matrices, lists), unconverted."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def table(X: Any) -> Any:
    """X itself if its rows can be indexed; else its examples as an array or a list."""
    if isinstance(X, np.ndarray) or _is_frame(X) or _is_sparse(X):
        return X.tocsr() if _is_sparse(X) else X
    return np.asarray(X) if hasattr(X, "__array__") else list(X)


def count(X: Any) -> int:
    """How many rows a table has."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(X: Any, where: slice | npt.NDArray[np.intp]) -> Any:
    """Rows of a table, as a table of the same kind; indexed by number they are a copy."""
    if isinstance(X, list):
        return X[where] if isinstance(where, slice) else [X[i] for i in where.tolist()]
    return X.iloc[where] if hasattr(X, "iloc") else X[where]


def join(tables: Sequence[Any]) -> Any:
    """Concatenate tables of one kind."""
    first = tables[0]
    if isinstance(first, list):
        return [example for examples in tables for example in examples]
    if isinstance(first, np.ndarray):
        return np.concatenate(tables)
    if _is_sparse(first):
        import scipy.sparse

        return scipy.sparse.vstack(tables, format="csr")
    return importlib.import_module(_package(first)).concat(tables)


def _package(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") or _package(X) == "polars"


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")
