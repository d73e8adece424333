from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.labels import Labels

class Table:
    decay: float
    levels: tuple[float, ...]
    near: npt.NDArray[np.float32]
    far: npt.NDArray[np.float32]
    few: npt.NDArray[np.float32]
    def __init__(
        self,
        decay: float,
        levels: tuple[float, ...],
        near: npt.NDArray[np.float32],
        far: npt.NDArray[np.float32],
        few: npt.NDArray[np.float32],
    ) -> None: ...
    @property
    def window(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def lower(self, level: int, n: int, ones: int) -> float: ...
    def upper(self, level: int, n: int, ones: int) -> float: ...

def small_codes(values: npt.NDArray[Any], classes: int, codes: npt.NDArray[np.uint16]) -> int: ...

class Pairs:
    _codes: dict[Hashable, int]
    _labels: Labels
    parameters: dict[str, Any]
    @property
    def events(self) -> int: ...
    @property
    def drift_detected(self) -> bool: ...
    @property
    def warning_detected(self) -> bool: ...
    def update(self, y_true: Any, y_pred: Any) -> Any: ...
    def _run(self, truths: npt.NDArray[np.uint16], guesses: npt.NDArray[np.uint16], start: int) -> tuple[int, Any]: ...
    def _forget(self) -> None: ...
    def _progress(self) -> tuple[int, int, bool, bool]: ...
    def _set_progress(self, events: int, since: int, drift: bool, warning: bool) -> None: ...

class FourRates(Pairs):
    def _configure(
        self,
        classes: int,
        tables: tuple[Table, ...],
        settings: list[list[tuple[int, int, int, bool, bool]]],
    ) -> None: ...
    def _rate(self, r: int) -> tuple[int, int, tuple[float, ...]]: ...
    def _crossed(self) -> list[tuple[int, int, bool]]: ...
    def _confusion(self) -> tuple[tuple[int, ...], ...]: ...
    def _state(
        self,
        counts: npt.NDArray[np.int64],
        statistics: npt.NDArray[np.float64],
        places: npt.NDArray[np.uint8],
    ) -> None: ...
    def _set_state(
        self,
        counts: npt.NDArray[np.int64],
        statistics: npt.NDArray[np.float64],
        places: npt.NDArray[np.uint8],
    ) -> None: ...
