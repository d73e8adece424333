import numpy as np
import numpy.typing as npt

class Lattice:
    decay: float
    spacing: float
    n: int
    def __init__(
        self,
        decay: float,
        spacing: float,
        stride: int,
        rows: int,
        width: int,
        floor_cut: float,
        ceil_cut: float,
    ) -> None: ...
    def advance(
        self, limit: int, levels: npt.NDArray[np.float64], margin: float, triangle: npt.NDArray[np.float32]
    ) -> None: ...
    def column(self, x: float, out: npt.NDArray[np.float64]) -> None: ...
    def plugin(self, level: float, margin: float, out: npt.NDArray[np.float32]) -> None: ...

class Search:
    def __init__(
        self,
        window: int,
        populations: npt.NDArray[np.float64],
        least: npt.NDArray[np.float64],
        levels: npt.NDArray[np.float64],
        few: npt.NDArray[np.float32],
    ) -> None: ...
    def refine(self, bound: float, tail: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
