"""The settings of a bank's streams: a detector for each group, and references by key.

:class:`Settings` checks that the detectors are compatible, names the group of a key, gives the detector of a stream,
and is the part of a saved bank besides its records.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.bank.references import References
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.lfr import LFR
from fourrates.labels import Labels
from fourrates.state import Saved

GroupOf = Mapping[Any, str] | Callable[[Any], str | None]


class Settings:
    """The detectors of a bank, by group, and its references; as given to :class:`fourrates.Bank`."""

    def __init__(
        self,
        detector: RecordDetector,
        reference: Any = None,
        groups: Mapping[str, RecordDetector] | None = None,
        group_of: GroupOf | None = None,
    ) -> None:
        if reference is not None and not isinstance(reference, Mapping):
            detector = _with_reference(detector, reference)
        elif reference is not None:
            _check_without_reference(detector)
        groups = groups or {}
        self.names: list[str | None] = [None, *groups]  # None for streams without a group
        given = zip(self.names, [detector, *groups.values()], strict=True)
        self.detectors = [_blank(own, name, detector) for name, own in given]
        if group_of is not None and not (isinstance(group_of, Mapping) or callable(group_of)):
            raise TypeError(f"group_of must be a mapping or a function from a key to a group, not {group_of!r}")
        if groups and group_of is None:
            raise ValueError(f"groups {tuple(groups)} without group_of, which says whose they are")
        self.group_of = group_of
        self.references = References(self.labels, reference) if isinstance(reference, Mapping) else None

    def given(self) -> dict[str, Any]:
        """The arguments, besides the first detector, that make the same settings again."""
        return {
            "reference": None if self.references is None else dict(self.references),
            "groups": dict(zip(self.names[1:], self.detectors[1:], strict=True)),
            "group_of": self.group_of,
        }

    @property
    def labels(self) -> Labels:
        """The classes, in the order of their codes."""
        return self.detectors[0].labels

    def groups_of(self, keys: Sequence[Hashable]) -> npt.NDArray[np.uint16]:
        """The number of each key's group."""
        groups = np.zeros(len(keys), np.uint16)
        if self.group_of is None:
            return groups
        ask = self.group_of.get if isinstance(self.group_of, Mapping) else self.group_of
        for i, key in enumerate(keys):
            name = ask(key)
            if name not in self.names:
                raise ValueError(f"key {key!r}: group {name!r} is not one of {tuple(self.names[1:])}")
            groups[i] = self.names.index(name)
        return groups

    def detector_of(self, key: Hashable, group: int) -> RecordDetector:
        """A shared detector for this stream, its reference among its settings; not to be changed."""
        detector = self.detectors[group]
        if self.references is None or key not in self.references:
            return detector
        return _with_reference(detector, self.references[key])

    def check_references(self, keys: Sequence[Hashable], records: npt.NDArray[np.uint8]) -> None:
        """Raise a ValueError unless the record of each key has that key's reference, or has left it for good."""
        assert self.references is not None
        first = self.detectors[0]
        assert isinstance(first, FourRates)
        held = records.view(first._evidence_rules.dtype())[:, 0]["look"]
        given, ones = self.references.numbers(keys)
        fits = ((held["given"] == given) & (held["ones"] == ones) | (held["given"] == 0)).all(1)
        if not fits.all():
            raise ValueError(f"the stream of key {keys[int(fits.argmin())]!r} holds another reference than the key has")

    def check_same(self, other: Settings) -> None:
        """Raise a ValueError that names a difference, if there is one; the references themselves may differ."""
        kinds = [type(settings.detectors[0]).__name__ for settings in (self, other)]
        if kinds[0] != kinds[1] or self.names != other.names:
            raise ValueError(
                f"the banks differ in their settings: {kinds[0]} with groups {self.names[1:]} here and {kinds[1]} with "
                f"groups {other.names[1:]} there"
            )
        for ours, theirs in zip(self.detectors, other.detectors, strict=True):
            for name, value in ours.parameters.items():
                if (their := theirs.parameters[name]) != value:
                    raise ValueError(
                        f"the banks differ in their settings: {name} is {value!r} here and {their!r} there"
                    )
        if (other.references is None) != (self.references is None):
            raise ValueError("the banks differ in their settings: one has references by key")

    def to_state(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The part of a saved bank: JSON, and sections."""
        about: dict[str, Any] = {
            "detector": type(self.detectors[0]).__name__,
            "parameters": [detector.parameters for detector in self.detectors],
            "groups": self.names[1:],
        }
        if self.references is None:
            return about, {}
        keys, counts = self.references.to_state()
        return about | {"references": keys}, {"references": counts}

    @classmethod
    def from_state(cls, found: Saved, group_of: GroupOf | None) -> Settings:
        """Load what :meth:`to_state` gave; anything else is an error."""
        about = found.about
        kind = {"LFR": LFR, "FourRates": FourRates}.get(about["detector"])
        if kind is None:
            raise ValueError(f"a bank of {about['detector']!r} detectors, which this release does not know")
        parameters, groups = about["parameters"], about["groups"]
        room = max(len(found.sections["records"]), 1 << 16)
        if any(8 * len(own["labels"]) ** 2 > room for own in parameters):
            raise ValueError("the records are too short for their labels")
        first, *others = [kind(**own) for own in parameters]
        if others and group_of is None:
            raise ValueError(f"the bank has groups {tuple(groups)}: give group_of")
        keyed = "references" in found.sections
        settings = cls(first, {} if keyed else None, dict(zip(groups, others, strict=True)), group_of)
        if keyed:
            settings.references = References.from_state(first.labels, about["references"], found.sections["references"])
        return settings


def _blank(detector: object, name: str | None, first: RecordDetector) -> RecordDetector:
    """A clone of a group's detector, if compatible with the first."""
    what = "the detector" if name is None else f"group {name!r}"
    if not isinstance(detector, RecordDetector):
        raise TypeError(f"{what} is neither a FourRates nor an LFR: {detector!r}")
    if type(detector) is not type(first):
        raise ValueError(f"{what} is {type(detector).__name__}, the bank has {type(first).__name__}")
    if detector.labels.values != first.labels.values:
        raise ValueError(f"{what} has the labels {detector.labels.values!r}, the bank has {first.labels.values!r}")
    if detector.rules.size != first.rules.size:
        raise ValueError(
            f"{what} needs records of {detector.rules.size} bytes, the bank has {first.rules.size}: it must have the "
            "same number of decays, the same mix and the same strata"
        )
    return detector.clone()


def _check_without_reference(detector: RecordDetector) -> FourRates:
    if not isinstance(detector, FourRates) or detector.parameters["reference"] is not None:
        raise ValueError(f"a reference, and {detector!r}: it must be a FourRates without one")
    return detector


def _with_reference(detector: RecordDetector, reference: Any) -> FourRates:
    """A detector of the same settings that has this reference."""
    return FourRates(**_check_without_reference(detector).parameters | {"reference": reference})
