import numpy as np
import numpy.typing as npt

class Table:
    def __init__(
        self,
        decay: float,
        levels: tuple[float, ...],
        near: npt.NDArray[np.float32],
        far: npt.NDArray[np.float32],
        few: npt.NDArray[np.float32],
    ) -> None: ...
    decay: float
    levels: tuple[float, ...]
    near: npt.NDArray[np.float32]
    far: npt.NDArray[np.float32]
    few: npt.NDArray[np.float32]
    window: int
    def lower(self, level: int, n: int, ones: int) -> float: ...
    def upper(self, level: int, n: int, ones: int) -> float: ...
