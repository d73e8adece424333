import numpy as np
import numpy.typing as npt

def by_stream(
    slots: npt.NDArray[np.int32],
    truths: npt.NDArray[np.uint16],
    preds: npt.NDArray[np.uint16],
    streams: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16], npt.NDArray[np.uint16], npt.NDArray[np.uint32]]: ...
