"""The runs that are still to be made, on as many processes as asked for, each kept as soon as it is finished.

A run knows its own seed, so the numbers are the same however the work is shared out. Every process computes on one
thread: the last digit of a product of matrices may depend on how many threads share it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, cast

from paper.store import Result, Store


class Experiment(Protocol):
    """Runs that differ by their seed only."""

    @property
    def name(self) -> str:
        """For the file of its results."""

    @property
    def cost(self) -> float:
        """Seconds a run, about."""

    @property
    def once(self) -> bool:
        """Whether there is one run only: a stream that cannot be drawn anew."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The data sets it reads."""

    def key(self, seed: int) -> dict[str, Any]:
        """Everything the numbers depend on."""

    def run(self, run: int, seed: int, folder: str | None) -> Result:
        """Make one run."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One run of one experiment."""

    experiment: Experiment
    run: int
    seed: int
    folder: str | None

    def __call__(self) -> Result:
        """Make it."""
        return self.experiment.run(self.run, self.seed, self.folder)


Progress = Callable[[Experiment, int, int], None]
"""Told the experiment, the runs finished so far, and the runs in all."""


def results(
    experiments: Sequence[Experiment],
    *,
    runs: int,
    seed: int,
    jobs: int,
    folder: Path,
    data: str | None = None,
    progress: Progress = lambda *_: None,
) -> dict[str, list[Result]]:
    """Every run of every experiment, from the disk where it was made before.

    Parameters
    ----------
    experiments : sequence of Experiment
        What to run, in this order.
    runs : int
        How many of each.
    seed : int
        Of the first.
    jobs : int
        Processes.
    folder : path
        Where the results are kept.
    data : str, optional
        The folder of the data sets.
    progress : callable
        Told after each run.
    """
    stores = {one.name: Store(folder, one.name, one.key(seed)) for one in experiments}
    wanted = {one.name: 1 if one.once else runs for one in experiments}
    missing = []
    for one in experiments:
        own = [run for run in range(wanted[one.name]) if run not in stores[one.name].results]
        missing += [Unit(one, run, seed, data) for run in own]
        progress(one, wanted[one.name] - len(own), wanted[one.name])
    with closing(_made(missing, jobs)) as made:  # whoever stops this, and where: no process stays behind
        for unit, result in made:
            store = stores[unit.experiment.name]
            store.add(unit.run, result)
            progress(unit.experiment, sum(run < wanted[store.name] for run in store.results), wanted[store.name])
    return {name: [store.results[run] for run in range(wanted[name])] for name, store in stores.items()}


def _made(units: Sequence[Unit], jobs: int) -> Generator[tuple[Unit, Result]]:
    if min(jobs, len(units)) <= 1:
        with _one_thread():
            for unit in units:
                yield unit, unit()
        return
    pool = ProcessPoolExecutor(min(jobs, len(units)), mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield from _shared_out(pool, units, jobs)
    except BaseException:
        # Who stops this does not want to wait for the runs under way.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _shared_out(pool: ProcessPoolExecutor, units: Sequence[Unit], jobs: int) -> Iterator[tuple[Unit, Result]]:
    """In the order they are finished; no more handed out at a time than keeps everyone busy."""
    waiting: dict[Future[Result], Unit] = {}
    left = iter(units)
    while True:
        for unit in left:
            waiting[pool.submit(unit)] = unit
            if len(waiting) >= 3 * jobs:
                break
        if not waiting:
            return
        finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in finished:
            yield waiting.pop(future), future.result()


def _begin() -> None:
    """In a new process: Ctrl-C is the parent's to answer, and one thread is enough."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _one_thread()


def _one_thread() -> AbstractContextManager[Any]:
    """From now on, or for as long as the context lasts."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # it comes with scikit-learn, and without that nothing here multiplies matrices
        return nullcontext()
    return cast(AbstractContextManager[Any], threadpool_limits(1))
