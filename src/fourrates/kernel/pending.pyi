import numpy as np
import numpy.typing as npt

from fourrates.kernel.logs import Logs

STATES: dict[str, int]

class Pending(Logs):
    def __init__(self, most_waiting: int, most_remembered: int, longest: float, width: int = 16) -> None: ...
    def take(
        self,
        ids: npt.NDArray[np.void],
        codes: npt.NDArray[np.uint16],
        is_label: npt.NDArray[np.uint8],
        true_codes: npt.NDArray[np.uint16] | None,
        tags: npt.NDArray[np.int64] | None,
        times: npt.NDArray[np.float64] | None,
        truths: npt.NDArray[np.uint16],
        preds: npt.NDArray[np.uint16],
        pair_tags: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int64],
    ) -> int: ...
    def expire(self, now: float) -> None: ...
    @property
    def sizes(self) -> tuple[int, int, int]: ...
    @property
    def counts(self) -> tuple[int, ...]: ...
    @property
    def clock(self) -> tuple[float, float]: ...
    @property
    def oldest_time(self) -> float: ...
    def load(
        self, logs: tuple[npt.NDArray[np.void], ...], counts: tuple[int, ...], now: float, began: float
    ) -> int: ...
