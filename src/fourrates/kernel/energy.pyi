import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

def distances(points: Array, alpha: float, found: Array) -> None: ...
def best_split(
    points: Array, kept: Array, order: npt.NDArray[np.int64], alpha: float, min_size: int, work: Array
) -> tuple[float, int, int]: ...
