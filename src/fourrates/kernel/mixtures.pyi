import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

def exponential_quantile(
    weights: Array, middles: Array, below: Array, above: Array, level: float, low: float, high: float
) -> float: ...
def logistic_quantile(
    weights: Array, middles: Array, scales: Array, level: float, low: float, high: float
) -> float: ...
