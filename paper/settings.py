"""The detectors of the paper's experiments, set as its Tables IV and V say, and LFR in two other ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import fourrates as fr
from fourrates.detectors import Detector
from paper import numbers
from paper.numbers import DECAY, Setting

PLUGIN = "LFR plug-in"
"""The paper's own way to the bounds, with R(0) counted: what LFR is without the exact null."""

STRICT = "LFR 1e-5"
"""LFR on the public data at the level of the synthetic streams: the paper's false alarms on SEA and HYPERPLANE are
nearer to this level than to the one it prints."""

NAMES = ("LFR", PLUGIN, "NFR", "DDM", "DDM-OCI")
PUBLIC = ("LFR", STRICT, *NAMES[1:])

_KINDS: Mapping[str, Callable[..., Detector]] = {
    "LFR": partial(fr.LFR, decay=DECAY),
    STRICT: partial(fr.LFR, decay=DECAY),
    PLUGIN: partial(fr.LFR, decay=DECAY, null="plugin"),
    "NFR": fr.baselines.NFR,
    "DDM": fr.baselines.DDM,
    "DDM-OCI": partial(fr.baselines.DDMOCI, decay=DECAY),
}


def synthetic() -> dict[str, Detector]:
    """New detectors as Table IV sets them.

    Examples
    --------
    >>> from paper import settings
    >>> settings.synthetic()["LFR"].parameters["detect"]
    1e-05
    """
    return _made(NAMES, numbers.TABLE4)


def public(dataset: str, positive: int = 1) -> dict[str, Detector]:
    """New detectors as Table V sets them.

    Parameters
    ----------
    dataset : str
        One of the paper's four.
    positive : int
        The code of the minority class, whose recall DDM-OCI watches.
    """
    return _made(PUBLIC, numbers.TABLE5[dataset], positive)


def _made(names: Sequence[str], table: Mapping[str, Setting], positive: int = 1) -> dict[str, Detector]:
    own = {**table, PLUGIN: table["LFR"], STRICT: numbers.TABLE4["LFR"]}
    return {
        name: _KINDS[name](warn=own[name].warn, detect=own[name].detect, labels=(0, 1), positive=positive)
        for name in names
    }
