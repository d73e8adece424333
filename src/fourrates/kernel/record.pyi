from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = bytes | npt.NDArray[np.uint8]

NUMBERS: dict[str, int]

class Rules:
    classes: int
    size: int
    scratch_size: int
    def check(self, records: npt.NDArray[np.uint8]) -> None: ...
    def start_again(self, record: npt.NDArray[np.uint8]) -> None: ...

Arena: Any  # the bank's own
