from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.kernel.pairs import Pairs

Bytes = bytes | npt.NDArray[np.uint8]

NUMBERS: dict[str, int]

class Rules:
    classes: int
    size: int
    scratch_size: int
    def check(self, records: npt.NDArray[np.uint8]) -> None: ...
    def start_again(self, record: npt.NDArray[np.uint8]) -> None: ...

class SingleStream(Pairs):
    rules: Rules
    record_bytes: bytes
    def _follow(self, rules: Rules) -> None: ...
    def _record_view(self) -> npt.NDArray[np.uint8]: ...
    def _reread(self) -> None: ...
    def _set_rules(self, rules: Rules) -> None: ...
    def _set_record(self, record: Bytes) -> None: ...

Arena: Any  # the bank's own
