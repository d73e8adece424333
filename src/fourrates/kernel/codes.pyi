from typing import Any

import numpy as np
import numpy.typing as npt

def small_codes(values: npt.NDArray[Any], classes: int, codes: npt.NDArray[np.uint16]) -> int: ...
def check_codes(codes: npt.NDArray[np.uint16], classes: int) -> int: ...
