"""Records of FourRates as version 4 of a saved state has them: a power for each size of a change, and counts as floats.

They go on as they would have: each number is kept, in the place that the present layout has for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.kernel.evidence import EvidenceRules
from fourrates.state import READ

if TYPE_CHECKING:
    from fourrates.kernel.layout import EvidenceLayout
    from fourrates.kernel.record import Rules

LANES, SIZES, BLOCKS, PLACES = 12, 6, 4, 4  # places of two bits in a byte
TOGETHER = 4096  # records that are brought over at a time


def present_records(rules: Rules, records: bytes | memoryview, version: int) -> bytes | memoryview:
    """Records that a state of this version holds, in the layout of the rules; a ValueError if they cannot be any."""
    if version not in READ:
        raise ValueError(f"records of version {version}; this release reads versions {READ[0]} to {READ[-1]}")
    if version != 4 or not isinstance(rules, EvidenceRules):
        return records
    old = _dtype(rules.layout)
    if len(records) % old.itemsize:
        raise ValueError(f"{len(records)} bytes of records where each has {old.itemsize}")
    found = np.frombuffer(records, old)
    made = np.zeros(found.size, rules.dtype())
    with np.errstate(invalid="ignore"):
        for start in range(0, found.size, TOGETHER):
            _fill(made[start : start + TOGETHER], found[start : start + TOGETHER])
    return made.tobytes()


def _dtype(layout: EvidenceLayout) -> np.dtype[Any]:
    """The layout of a record in version 4."""
    lanes = [("evidence", "f4", LANES), ("age", "f4", LANES)]
    blocks = [(name, "f4", BLOCKS) for name in ("signed", "both", "squares", "pairs")]
    dispersion = ("dispersion", [("block", "f4"), *blocks])
    watch = [("n", "i8"), ("ones", "i8"), ("base", "f4"), ("due", "f4"), ("total", "f4")]
    place = [("last", "u4"), ("moved", "i1"), ("row", "u1"), ("phase", "u2")]
    powers = [("power", "f4", SIZES), ("shared_power", "f4", SIZES)]
    since = [("seen", "f4", LANES), ("right", "f4", LANES)]
    shared = [("taken", "i8"), ("own", "f8"), ("total", "f4"), ("residual", "f4"), *lanes, dispersion]
    parts = {
        "recall": [*watch, *place, *powers, *lanes, *since, dispersion],
        "shared": shared,
        "mix": [*watch, ("power", "f4"), *lanes, dispersion],
    }
    now = layout.dtype()
    fields: list[Any] = []
    for name in now.names or ():
        own = np.dtype(parts[name], align=True) if name in parts else now[name].base
        fields.append((name, own, now[name].shape))
    return np.dtype(fields, align=True)


def _fill(made: Any, found: Any) -> None:
    """Write records in the present layout."""
    for name in made.dtype.names:
        if name in ("recall", "shared", "mix"):
            _fill_part(made[name], found[name])
        else:
            made[name] = found[name]
    recall, places = made["recall"], []
    for name in ("power", "shared_power"):
        recall[name], own = _told_apart(found["recall"][name])
        places.append(own)
    bits = np.concatenate(places, -1).reshape(*recall.shape, -1, PLACES) << (2 * np.arange(PLACES))
    recall["reach"] = bits.sum(-1)


def _fill_part(made: Any, found: Any) -> None:
    """All but the powers of a recall."""
    for name in made.dtype.names:
        if name in ("block", "signed", "both"):
            made[name] = _amounts(found["dispersion"][name], made[name].dtype)
        elif name == "dispersion":
            for part in made[name].dtype.names:
                made[name][part] = found[name][part]
        elif name in found.dtype.names and found[name].shape == made[name].shape:
            made[name] = found[name]


def _amounts(found: Any, kind: np.dtype[Any]) -> Any:
    """What blocks hold: whole numbers, or fractions."""
    if kind.kind == "f":
        return found
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    if not ((found >= least) & (found <= most) & (found == np.rint(found))).all():
        raise ValueError("blocks of no stream")
    return found.astype(kind)


def _told_apart(power: Any) -> tuple[Any, Any]:
    """The different ones of the powers of all sizes, the largest first; and which of them each size has."""
    order = np.argsort(-power, axis=-1, kind="stable")
    falling = np.take_along_axis(power, order, -1)
    steps = np.cumsum(falling[..., 1:] != falling[..., :-1], -1)
    place = np.concatenate([np.zeros_like(steps[..., :1]), steps], -1)
    if (place >= BLOCKS).any():
        raise ValueError("more powers than sizes of blocks")
    different = np.repeat(falling[..., -1:], BLOCKS, -1)
    np.put_along_axis(different, place, falling, -1)
    places = np.empty_like(place)
    np.put_along_axis(places, order, place, -1)
    return different, places
