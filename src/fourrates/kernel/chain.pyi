import numpy as np
import numpy.typing as npt

def passage(
    decay: float,
    rate: float,
    lower: float,
    upper: float,
    points: npt.NDArray[np.float64],
    mass: npt.NDArray[np.float64],
    left: npt.NDArray[np.float64],
) -> None: ...
def companion(
    bits: npt.NDArray[np.uint8],
    shared: npt.NDArray[np.uint8],
    between: npt.NDArray[np.int32],
    own: npt.NDArray[np.uint8],
    decay: float,
    lower: float,
    upper: float,
    statistic: npt.NDArray[np.float64],
    out: npt.NDArray[np.uint8],
) -> None: ...
