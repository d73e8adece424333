import numpy as np
import numpy.typing as npt

ENTRY: np.dtype[np.void]

class Logs:
    @property
    def nbytes(self) -> int: ...
    def dump(self, log: int) -> npt.NDArray[np.void]: ...
