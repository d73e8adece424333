import numpy as np
import numpy.typing as npt

def likelihood(
    n: npt.NDArray[np.int64],
    ones: npt.NDArray[np.int64],
    total: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    prior: npt.NDArray[np.float64],
    found: npt.NDArray[np.float64],
) -> None: ...
