"""The result of :func:`fourrates.detect`: findings in order and how things are, to inspect, draw or write."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fourrates import plain
from fourrates.findings import Drift, Finding
from fourrates.io import Events
from fourrates.watch import Now, Watch
from fourrates.watch.dispersion import dispersions, in_words
from fourrates.watch.now import several

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas  # type: ignore[import-untyped]
    from matplotlib.figure import Figure

    from fourrates.slices import Slice

SHOWN = 20  # findings in a summary


class Findings:
    """The result of :func:`detect`, with findings in order and the current status, to inspect, draw or write.

    Iterating gives each :class:`~fourrates.Finding`, drifts, their ends, and shifts of the class mix and of the
    predictions.

    Attributes
    ----------
    watch : Watch
        The watch, with its `detector`, its `segments`.
    source : Events
        The data read.
    messages : list of str
        Messages about choices made from the data.
    """

    def __init__(self, watch: Watch, source: Events, findings: list[Finding], messages: list[str]) -> None:
        self.watch, self.source, self.messages, self._findings = watch, source, messages, findings

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)

    def __getitem__(self, at: int) -> Finding:
        return self._findings[at]

    @property
    def drifts(self) -> list[Drift]:
        """The drifts alone."""
        return [finding for finding in self._findings if isinstance(finding, Drift)]

    @property
    def dispersion(self) -> dict[str, float]:
        """Clustering of errors by recall, over all segments; for FourRates."""
        return dispersions(self.watch)

    @property
    def events(self) -> int:
        """Events read, in all segments."""
        return self.watch.events

    def now(self) -> Now:
        """The status at the end of the data, with open drifts and the rates since their alarms."""
        return self.watch.now()

    def slices(self, *columns: str, drift: Drift | None = None) -> list[Slice]:
        """The place of a drift, as the values of these columns, and pairs of them, that explain it, strongest first.

        Parameters
        ----------
        *columns : str
            Columns of the data, names or numbers, which are read again; with `labels_from`, of the predictions.
        drift : Drift, optional
            The drift; by default the worst open one, or else the last.
        """
        from fourrates.slices import slices_of

        drift = drift or self._worst()
        if drift is None:
            return []
        return slices_of(self.source, self._findings, drift, columns)

    def examples(self, drift: Drift | None = None) -> dict[str, npt.NDArray[np.int64]]:
        """The rows from a drift's start to its end, to train the next model on.

        By file, or "frame", counted from 1; with `labels_from`, rows of the predictions. The data are read again.

        Parameters
        ----------
        drift : Drift, optional
            The drift; by default the worst open one, or else the last.
        """
        from fourrates.slices import examples_of

        drift = drift or self._worst()
        return {} if drift is None else examples_of(self.source, self._findings, drift)

    def _worst(self) -> Drift | None:
        return next(iter([opened.drift for opened in self.now().open] or self.drifts[-1:]), None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {
            **plain.about(self.watch, self.source, self._findings),
            "dispersion": {rate: plain.finite(value) for rate, value in self.dispersion.items()},
            "messages": self.messages,
            "findings": [plain.finding_record(finding, self.source.utc) for finding in self._findings],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with one row for each rate that moved."""
        import pandas

        frame = pandas.DataFrame(plain.rows(self._findings, self.source.utc), columns=plain.COLUMNS)
        return frame.drop(columns=[name for name in ("segment", "version") if frame[name].isna().all()])

    def plot(self, segment: str | None = None) -> Figure:
        """Draw the rates of a segment over time; by default, of the first that drifted."""
        from fourrates.plot import drawn

        return drawn(self.watch, self._findings, segment)

    def report(self, path: str | os.PathLike[str], slices: Sequence[str] = ()) -> None:
        """Write a self-contained HTML report; `slices` as for :meth:`slices`."""
        from fourrates import files
        from fourrates.report import page

        files.check_writable(path)
        files.write(path, page(self, self.slices(*slices) if slices else None).encode())

    def headline(self) -> str:
        """The current status, with the number of drifts and events, and their time span."""
        return ". ".join(self._first_lines())

    def _first_lines(self) -> list[str]:
        return [line for line in (str(self.now()), self.history()) if line]

    def history(self) -> str:
        """The number of drifts, unless it is too early to say, and of events, and their time span."""
        text, watch = several(self.events, "event"), self.watch
        if not self.now().unknown:
            counts = plain.counted(finding.kind for finding in self._findings)
            if self.source.rows < watch.events:  # a state has events of earlier runs
                text = f"{counts.replace('no drift', 'no new drift')} in this run; so far {text}"
            else:
                text = f"{counts} in {text}"
        if self.source.columns.by is not None:
            text += f" of {several(len(watch.segments), 'segment')}"
        if watch.first_time is not None and watch.last_time is not None:
            first, last = (plain.moment(at, False, precise=False) for at in (watch.first_time, watch.last_time))
            text += f", {first} to {last}{' UTC' if self.source.utc else ''}"
        return text[0].upper() + text[1:]

    def summary(self) -> str:
        """The status, the findings, and the choices made, as text."""
        lines = self._first_lines()
        lines += [f"  {_line(finding, self.source.utc)}" for finding in self._findings[:SHOWN]]
        if len(self._findings) > SHOWN:
            lines.append(f"  ... and {len(self._findings) - SHOWN:,} more")
        if self._findings and (too_few := plain.too_few_examples(self.watch, self._findings)) is not None:
            lines.append(too_few)
        return "\n".join([*lines, *self._correlated(), *self.messages])

    def _correlated(self) -> list[str]:
        drifted = bool(self.drifts or self.now().open)
        return [words] if (words := in_words(self.dispersion, drifted)) else []

    def __repr__(self) -> str:
        return f"<Findings: {self.headline()}>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Status, rates that moved over time, and a table, for notebooks."""
        from fourrates.report.notebook import fragment

        notes = [*self._correlated(), *self.messages]
        return fragment(self.headline(), self._findings, self.source.utc, notes, self.watch)


def _line(finding: Finding, utc: bool) -> str:
    when = plain.moment(finding.time, utc, precise=False)
    segment = "" if finding.where is None else f"{finding.where}: "
    precisions = "".join(f"; {change}" for change in finding.precisions) if isinstance(finding, Drift) else ""
    return f"{segment}{'' if when is None else f'{when}, '}{finding}{precisions}"
