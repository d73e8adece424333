"""Labels that are wrong by chance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def turned(labels: npt.NDArray[np.bool_], noise: float, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Turn each label, 0 to 1 and 1 to 0, with probability `noise`."""
    if not 0 <= noise <= 1:
        raise ValueError(f"noise {noise} is not in [0, 1]")
    return (labels ^ (random.random(labels.size) < noise)).astype(np.int64)
