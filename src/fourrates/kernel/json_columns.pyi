import numpy as np
import numpy.typing as npt

Column = bytes | memoryview | npt.NDArray[np.uint8]

def label_codes(
    column: Column, tokens: npt.NDArray[np.uint8], edges: npt.NDArray[np.int32], codes: npt.NDArray[np.uint8]
) -> int: ...
def integers(column: Column, values: npt.NDArray[np.int64]) -> int: ...
def texts(column: Column, edges: npt.NDArray[np.uint32], data: npt.NDArray[np.uint8]) -> int: ...
def distinct(
    column: Column,
    seed: int,
    table: npt.NDArray[np.int32],
    codes: npt.NDArray[np.uint32],
    firsts: npt.NDArray[np.uint32],
    lasts: npt.NDArray[np.uint32],
) -> tuple[int, int]: ...
def gather(
    texts: list[bytes | None],
    names: npt.NDArray[np.uint8],
    edges: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
    filled: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
) -> int: ...
