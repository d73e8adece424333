"""The address of a topic, ``kafka://broker:9092/topic?group=...&drifts=...``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from fourrates.io import InputError

Start = Literal["earliest", "latest"]
SCHEME = "kafka://"
NAMES = ("group", "drifts", "dead_letter", "start", "config")


@dataclass(frozen=True, slots=True)
class Address:
    """A topic and the settings for reading it.

    Attributes
    ----------
    servers : str
        One broker or several, as ``host:port,host:port``.
    topic : str
        The topic of events.
    group : str
        The consumer group. Its members share the partitions; it is part of the ids of drifts.
    drifts, dead_letter : str, optional
        The topics for drifts and rejected messages.
    start : {"earliest", "latest"}
        The place to begin a partition that was never read.
    settings : mapping
        Properties of librdkafka, such as ``security.protocol``, for consumer and producer; each ignores the other's.

    Examples
    --------
    >>> from fourrates.engines.kafka import Address
    >>> address = Address.parse("kafka://one:9092,two:9092/predictions?drifts=drifts&client.id=monitor")
    >>> address.servers, address.topic, address.group, address.drifts, dict(address.settings)
    ('one:9092,two:9092', 'predictions', 'fourrates-predictions', 'drifts', {'client.id': 'monitor'})
    """

    servers: str
    topic: str
    group: str = ""
    drifts: str | None = None
    dead_letter: str | None = None
    start: Start = "earliest"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.servers or not self.topic or "/" in self.topic:
            raise InputError(f"a broker and a topic are needed, as in kafka://broker:9092/topic, not {str(self)!r}")
        if self.start not in ("earliest", "latest"):
            raise InputError(f"start {self.start!r} is neither earliest nor latest")
        if self.topic in (self.drifts, self.dead_letter):
            raise InputError(f"topic {self.topic!r} cannot take in its own findings")
        if not self.group:
            object.__setattr__(self, "group", f"fourrates-{self.topic}")

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.topic}"

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read an address; names with a dot in its query are properties of librdkafka.

        ``config=FILE`` names a file of such properties, ``name=value`` a line, which keeps passwords out of commands.
        """
        parts = urlsplit(url)
        if parts.scheme != "kafka" or parts.username or parts.fragment:
            raise InputError(f"{url!r} is not written like kafka://broker:9092/topic?group=name&drifts=topic")
        given: dict[str, str] = {}
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if "." not in name and name not in NAMES:
                raise InputError(f"{url!r}: no setting {name!r}; there are {', '.join(NAMES)}, and those of librdkafka")
            given[name] = value
        settings = _properties(given["config"]) if "config" in given else {}
        settings |= {name: value for name, value in given.items() if "." in name}
        known: Any = {name: value for name, value in given.items() if "." not in name and name != "config"}
        return cls(parts.netloc, unquote(parts.path.strip("/")), settings=settings, **known)


def _properties(path: str) -> dict[str, str]:
    """The properties in a file; blank lines and those that begin with # are none."""
    properties: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                name, equals, value = line.partition("=")
                if not equals:
                    raise InputError(f"{path}, line {number}: not written like name=value")
                properties[name.strip()] = value.strip()
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    return properties
