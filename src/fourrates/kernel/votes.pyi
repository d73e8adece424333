import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

def values(counts: Array, measure: int, found: Array) -> None: ...
def class_weights(counts: Array, measure: int, found: Array) -> None: ...
def apply(
    forecasts: Array, places: npt.NDArray[np.int64], weights: Array, worth: Array, said: npt.NDArray[np.int32]
) -> None: ...
def follow(
    forecasts: Array,
    truths: npt.NDArray[np.uint16],
    at: int,
    places: npt.NDArray[np.int64],
    weights: Array,
    worth: Array,
    counts: Array,
    measure: int,
    rule: int,
    rates: Array,
    share: float,
    threshold: float,
    longest: float,
    served: npt.NDArray[np.int32],
) -> int: ...
