from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.kernel.record import Bytes, Rules

class LinearRules(Rules):
    def __init__(self, classes: int, tests: Sequence[Any]) -> None: ...
    def counts(self, record: Bytes) -> npt.NDArray[np.int64]: ...
    def statistics(self, record: Bytes) -> list[float]: ...
