"""Everything that can be reproduced, by name: the paper's Tables I to V, its figures, and what stands beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fourrates.evaluate import summarise
from paper import dimensions, figures, numbers, tables
from paper.dimensions import Dimensions
from paper.electricity import Electricity
from paper.power import LAGS, LEVEL, RATES, Power, linear_power, power
from paper.public import CODES, Public
from paper.settings import NAMES
from paper.single import single_run
from paper.store import Result
from paper.synthetic import Synthetic
from paper.tables import Record, Results, Runs, Table, label
from paper.work import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SYNTHETIC = "synthetic"
"""The word for everything that needs no data."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure, the numbers it is drawn from, and what is to say about it."""

    figure: Figure
    records: list[Record]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Context:
    """What there is to make tables and figures of."""

    experiments: Sequence[Experiment]
    results: Results
    seed: int
    data: str | None

    def runs(self, names: Iterable[str]) -> list[Runs]:
        """The experiments of these names that were run and have changes."""
        wanted = set(names)
        return [one for one in self.experiments if isinstance(one, Synthetic | Public) and one.name in wanted]


@dataclass(frozen=True, slots=True)
class Item:
    """A table or a figure.

    Attributes
    ----------
    name : str
        As ``--only`` has it.
    title : str
        Above it.
    make : callable
        From a context to a :class:`~paper.tables.Table` or a :class:`Drawing`.
    needs : tuple of str
        The experiments it is made of.
    data : tuple of str
        Data sets it reads itself.
    """

    name: str
    title: str
    make: Callable[[Context], Table | Drawing]
    needs: tuple[str, ...] = ()
    data: tuple[str, ...] = field(default=())


def experiments(quick: bool) -> list[Experiment]:
    """Every experiment, in the paper's order."""
    synthetic = [Synthetic(name, quick) for name in numbers.SYNTHETIC]
    public = [Public(name, weighted, quick) for name in numbers.PUBLIC for weighted in (False, True)]
    return [*synthetic, *public, Electricity(quick), Dimensions(quick)]


PUBLIC = tuple(one.name for one in experiments(False) if isinstance(one, Public))
ALL = (*numbers.SYNTHETIC, *PUBLIC)


# Tables ------------------------------------------------------------------------------------------------------


def _hits(context: Context) -> Table:
    return tables.hits(context.runs(ALL), context.results)


def _false_alarms(context: Context) -> Table:
    return tables.false_alarms(context.runs(ALL), context.results)


def _delays(context: Context) -> Table:
    own = [one for one in context.runs(PUBLIC) if isinstance(one, Public)]
    table = tables.delays(own, context.results)
    table.notes.append(tables.weights(own, context.results))
    return table


# Figures -----------------------------------------------------------------------------------------------------


def _single_run(context: Context) -> Drawing:
    run = single_run(context.seed)
    found = {name: next((at for at in times if at >= run.change), None) for name, times in run.found.items()}
    naive = found["NFR"]
    later = "NFR not at all" if naive is None else f"NFR at {naive:,}"
    notes = [
        f"Balance1, the change at {run.change:,}: LFR reports it at {found['LFR']:,} (the paper's run: "
        f"{numbers.FIRST_FOUND:,}), {later}, though its level is 100 times as high. R scatters "
        "widely and follows at once; P-hat is smooth and slow.",
        f"The stream is the first, from seed {context.seed} on, that LFR reports once and within 200 events of "
        f"the change: seed {run.seed}.",
    ]
    records: list[Record] = [{"detector": name, "drift": at} for name, times in run.found.items() for at in times]
    return Drawing(figures.single_run(run), records, notes)


SURFACE = tuple(q for q in RATES if 0.1 <= q <= 0.8)  # the paper's range
TENTHS = RATES[1::2]
OLD = (0.1, 0.3, 0.5, 0.7, 0.9)
EXACT = (
    f"Computed from the laws themselves, without simulation, at level {LEVEL:g} on each side for both statistics; "
    "the paper prints no level."
)


def _surfaces(context: Context) -> Drawing:
    found = power(0.9, SURFACE)
    ahead = found.difference > 0
    last = LAGS - np.argmax(ahead[::-1], axis=0)
    overtaken = [(q, int(lag)) for q, lag in zip(found.q, last, strict=True) if lag < LAGS]
    notes = [
        f"R is ahead of P-hat at every new rate at first: at lag 10 by {found.difference[9].max():.2f} at most. P-hat "
        f"overtakes it at {len(overtaken)} of {len(found.q)} rates within {LAGS} observations"
        + (f", first at lag {min(lag for _, lag in overtaken) + 1}." if overtaken else "."),
        EXACT,
    ]
    return Drawing(figures.power_surfaces(found), _power_records([found]), notes)


def _differences(context: Context) -> Drawing:
    found = [power(p, TENTHS) for p in OLD]
    pairs = [(one, column) for one in found for column, q in enumerate(one.q) if abs(q - one.p) > 1e-9]
    early = sum(bool(one.difference[:10, column].max() > 0) for one, column in pairs)
    late = sum(bool(one.difference[-1, column] < 5e-4) for one, column in pairs)
    notes = [
        f"Of {len(pairs)} pairs with q other than p, R is ahead within the first 10 observations in {early}, and P-hat "
        f"is level or ahead after {LAGS} in {late}: soon after a change R is the better statistic, long after P-hat.",
        EXACT,
    ]
    return Drawing(figures.power_differences(found), _power_records(found), notes)


def _power_records(powers: Sequence[Power]) -> list[Record]:
    return [
        {
            "p": one.p,
            "q": q,
            "lag": lag + 1,
            "power_R": round(float(one.linear[lag, column]), 6),
            "power_P_hat": round(float(one.naive[lag, column]), 6),
        }
        for one in powers
        for column, q in enumerate(one.q)
        for lag in range(len(one.linear))
    ]


def _heatmap(context: Context) -> Drawing:
    values = np.array([linear_power(p, RATES)[-1] for p in RATES])
    rates = np.array(RATES)
    far = np.abs(rates[:, None] - rates) >= 0.5 - 1e-9
    notes = [
        f"{LAGS} observations after the change, the power of R is above 0.9 for {np.mean(values[far] > 0.9):.0%} of "
        f"the pairs half or more apart. Where nothing changes it is {np.diag(values).mean():.3f}, twice the level.",
        EXACT,
    ]
    records: list[Record] = [
        {"p": p, "q": q, "power_R": round(float(values[i, j]), 6)}
        for i, p in enumerate(RATES)
        for j, q in enumerate(RATES)
    ]
    return Drawing(figures.power_heatmap(RATES, values, LAGS), records, notes)


def _histogram(names: tuple[str, ...]) -> Callable[[Context], Drawing]:
    def make(context: Context) -> Drawing:
        own = context.runs(names)
        panels, records, notes = [], [], []
        for one in own:
            runs = context.results[one.name]
            drifts = {name: [at for run in runs for at in run["drifts"][name]] for name in NAMES}
            panels.append(figures.Detections(label(one), drifts, len(runs)))
            for name, times in drifts.items():
                counts, edges = np.histogram(times, np.arange(0, one.length + one.window, one.window))
                records += [
                    {"experiment": label(one), "detector": name, "from": int(left), "detections": int(count)}
                    for left, count in zip(edges, counts, strict=False)
                    if count
                ]
            notes.append(_counts(one, context))
        first = own[0]
        return Drawing(figures.histogram(panels, first.length, first.changes, first.window), records, notes)

    return make


def _counts(experiment: Runs, context: Context) -> str:
    found = {name: summarise(own) for name, own in tables.scores(experiment, context.results[experiment.name]).items()}
    first = next(iter(found.values()))
    hits = ", ".join(f"{name} {own.hits}" for name, own in found.items())
    false = ", ".join(f"{name} {own.false_alarms}" for name, own in found.items())
    return (
        f"{label(experiment)}: of {first.changes} changes in {first.runs} runs, found in the bin that follows: {hits}. "
        f"False alarms: {false}."
    )


def _dimensions(context: Context) -> tuple[Dimensions, Sequence[Result]]:
    experiment = next(one for one in context.experiments if isinstance(one, Dimensions))
    return experiment, context.results[experiment.name]


def _power_panels(context: Context) -> Drawing:
    experiment, results = _dimensions(context)
    panels, records = dimensions.panels(experiment, results)
    return Drawing(figures.power_panels(panels, dimensions.FALSE_ALARMS), records, dimensions.notes(experiment))


SHOWN = {
    "figure5": "Balance1",
    "figure6": "Balance2",
    "figure7": "Imbalance1",
    "figure8": "SEA",
    "figure9": "HYPERPLANE",
    "figure10": "USENET1",
}
UNPRINTED = ("Balance3", "Imbalance2", "Imbalance3", "USENET2")  # "the remaining ones are similar", says the paper


def _histograms() -> list[Item]:
    printed = [(name, f"Figure {name.removeprefix('figure')}", data) for name, data in SHOWN.items()]
    others = [(f"histogram-{data.lower()}", "Not printed in the paper", data) for data in UNPRINTED]
    items = []
    for name, place, data in printed + others:
        needs = (data,) if data in numbers.SYNTHETIC else (data, f"{data}-weighted")
        items.append(Item(name, f"{place}: when each detector reports, {data}", _histogram(needs), needs))
    return items


ITEMS = (
    Item(
        "table1",
        "Table I: the public data sets",
        lambda context: tables.features(context.data),
        data=tuple(CODES[name] for name in numbers.TABLE1),
    ),
    Item("table2", "Table II: changes found at once", _hits, ALL),
    Item("table3", "Table III: false detections", _false_alarms, ALL),
    Item("table4", "Table IV: settings on the synthetic streams", lambda _: tables.synthetic_settings()),
    Item("table5", "Table V: settings on the public data", lambda _: tables.public_settings()),
    Item("figure1", "Figure 1: a single run of LFR and NFR", _single_run),
    Item("figure2", "Figure 2: power over lag and new rate, from p = 0.9", _surfaces),
    Item("figure3", "Figure 3: what R is ahead of P-hat in power", _differences),
    Item("figure4", "Figure 4: power of R at K = 200, all pairs of rates", _heatmap),
    *_histograms(),
    Item("delays", "Beyond the paper: how soon, and how right", _delays, PUBLIC),
    Item(
        "electricity",
        "Beyond the paper: a real stream nobody tuned for, elecNorm",
        lambda context: tables.electricity(context.results),
        ("elecNorm",),
    ),
    Item(
        "dimensions",
        "Beyond the paper: tests on P(X, y) against the rates, as the dimension grows",
        lambda context: dimensions.table(*_dimensions(context)),
        ("dimensions",),
    ),
    Item(
        "figure-dimensions",
        "Beyond the paper: the same as curves",
        _power_panels,
        ("dimensions",),
    ),
)
"""In the order of the page."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be made, and the experiments that takes."""

    items: tuple[Item, ...]
    experiments: tuple[Experiment, ...]

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets that are read."""
        own = [name for item in self.items for name in item.data]
        return tuple(dict.fromkeys([*own, *(name for one in self.experiments for name in one.needs)]))


def choose(only: Sequence[str], quick: bool) -> Choice:
    """The tables and figures of these names, or all; without data, if ``synthetic`` is among the names.

    Parameters
    ----------
    only : sequence of str
        Names.
    quick : bool
        Whether streams are shortened.

    Examples
    --------
    >>> from paper.catalogue import choose
    >>> [one.name for one in choose(["table2", "synthetic"], quick=False).experiments]
    ['Balance1', 'Balance2', 'Balance3', 'Imbalance1', 'Imbalance2', 'Imbalance3']
    """
    known = [item.name for item in ITEMS]
    for name in only:
        if name not in (*known, SYNTHETIC):
            raise ValueError(
                f"--only {name}: there is no such table or figure; there are {', '.join(known)}, {SYNTHETIC}"
            )
    named = set(only) - {SYNTHETIC} or set(known)
    there = [one for one in experiments(quick) if SYNTHETIC not in only or not one.needs]
    within = {one.name for one in there}
    items = [
        item
        for item in ITEMS
        if item.name in named
        and (not item.needs or within & set(item.needs))
        and (SYNTHETIC not in only or not item.data)
    ]
    if not items:
        raise ValueError(f"--only {' --only '.join(only)}: nothing is left that needs no data")
    needed = {name for item in items for name in item.needs}
    return Choice(tuple(items), tuple(one for one in there if one.name in needed))
