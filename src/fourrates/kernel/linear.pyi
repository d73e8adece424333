import numpy as np
import numpy.typing as npt

from fourrates.kernel.record import Bytes, Rules
from fourrates.kernel.tables import Table

class LinearRules(Rules):
    def __init__(self, classes: int, tests: list[list[tuple[Table, int, int, bool, bool]]]) -> None: ...
    @property
    def rates(self) -> int: ...
    @property
    def tests(self) -> int: ...
    def counts(self, record: Bytes) -> npt.NDArray[np.int64]: ...
    def statistics(self, record: Bytes) -> list[float]: ...
    def crossed(self, record: Bytes) -> list[tuple[int, bool]]: ...
    def assemble(
        self,
        events: int,
        since: int,
        drifted: bool,
        warned: bool,
        counts: npt.NDArray[np.int64],
        statistics: npt.NDArray[np.float64],
        places: npt.NDArray[np.uint8],
    ) -> bytes: ...
