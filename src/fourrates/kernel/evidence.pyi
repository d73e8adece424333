from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.kernel.record import Bytes, Rules

NUMBERS: dict[str, int]
PARTS: np.dtype[Any]

class EvidenceRules(Rules):
    def __init__(self, classes: int, settings: dict[str, Any]) -> None: ...
    threshold: float
    mix_threshold: float
    back_threshold: float
    confirm: float
    withdraw: float
    recover: float
    least_known: float
    watch_mix: bool
    watch_joint: bool
    estimate: bool
    directions: int
    strata: int
    sampled: bool
    def look_weights(
        self, record: Bytes, c: int, way: int, direction: int, least: float = 0.0
    ) -> npt.NDArray[np.float32]: ...
    def decision(self, record: Bytes, c: int) -> int: ...
    def support(self, record: Bytes, c: int) -> tuple[float, float]: ...
    watch_confusions: bool
    confusion_weight: float
    def confused(self, record: Bytes, classes: list[int]) -> npt.NDArray[np.float64]: ...
    def returning(self, record: Bytes, c: int) -> float: ...
