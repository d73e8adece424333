"""Runs shared out, kept, and taken up again."""

import json
import multiprocessing
import os
from dataclasses import dataclass

import pytest

import fourrates as fr
from paper import work
from paper.public import Public
from paper.store import Store
from paper.synthetic import Synthetic

DATA = os.environ.get("FOURRATES_DATA")


@dataclass(frozen=True)
class Counting:
    """An experiment that notes its runs, and may stop like a person does."""

    log: list
    stop: int | None = None
    name = "counting"
    cost = 1.0
    once = False
    needs = ()

    def key(self, seed):
        return {"seed": seed}

    def run(self, run, seed, folder):
        if run == self.stop:
            raise KeyboardInterrupt
        self.log.append(run)
        return {"square": (seed + run) ** 2}


def _results(folder, *experiments, **asked):
    return work.results(experiments, **{"runs": 3, "seed": 0, "jobs": 1, "folder": folder, **asked})


def test_a_second_run_does_no_work(tmp_path):
    log = []
    first = _results(tmp_path, Counting(log))
    again = _results(tmp_path, Counting(log))
    assert first == again == {"counting": [{"square": 0}, {"square": 1}, {"square": 4}]}
    assert log == [0, 1, 2]


def test_more_runs_add_to_those_that_are_there(tmp_path):
    log = []
    _results(tmp_path, Counting(log), runs=2)
    assert len(_results(tmp_path, Counting(log), runs=5)["counting"]) == 5
    assert log == [0, 1, 2, 3, 4]


def test_fewer_runs_take_the_first_of_those_that_are_there(tmp_path):
    _results(tmp_path, Counting([]), runs=5)
    assert _results(tmp_path, Counting([]), runs=2)["counting"] == [{"square": 0}, {"square": 1}]


def test_an_interrupt_keeps_what_is_finished(tmp_path):
    log = []
    with pytest.raises(KeyboardInterrupt):
        _results(tmp_path, Counting(log, stop=2), runs=4)
    assert len(_results(tmp_path, Counting(log), runs=4)["counting"]) == 4
    assert log == [0, 1, 2, 3]


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_behind(tmp_path):
    def stop(one, done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _results(tmp_path, Synthetic("Balance1", quick=True), runs=50, jobs=2, progress=stop)
    assert multiprocessing.active_children() == []
    (kept,) = tmp_path.iterdir()
    assert len(kept.read_text().splitlines()) == 2


def test_another_seed_takes_nothing_from_the_first(tmp_path):
    log = []
    _results(tmp_path, Counting(log))
    assert _results(tmp_path, Counting(log), seed=1)["counting"][0] == {"square": 1}
    assert log == [0, 1, 2, 0, 1, 2]


def test_shortened_streams_are_not_taken_for_whole_ones():
    assert Synthetic("Balance1").key(0) != Synthetic("Balance1", quick=True).key(0)
    assert Public("SEA").key(0) != Public("SEA", quick=True).key(0)
    assert Public("SEA").key(0) != Public("SEA", weighted=True).key(0)


def test_the_results_of_other_detectors_are_not_taken():
    class Sharper(Public):
        def detectors(self, positive=1):
            return {"LFR": fr.LFR(detect=1e-6, positive=positive)}

    assert Sharper("SEA").key(0) != Public("SEA").key(0)
    assert list(Sharper("SEA").key(0)["detectors"]) == ["LFR"]


def test_a_line_cut_short_is_made_again(tmp_path):
    store = Store(tmp_path, "one", {})
    store.add(0, {"a": 1})
    store.add(1, {"a": 2})
    store.path.write_bytes(store.path.read_bytes()[:-4])
    again = Store(tmp_path, "one", {})
    assert again.results == {0: {"a": 1}}
    again.add(1, {"a": 3})
    assert Store(tmp_path, "one", {}).results == {0: {"a": 1}, 1: {"a": 3}}
    assert [json.loads(line)["run"] for line in store.path.read_text().splitlines()] == [0, 1]


@pytest.mark.slow
def test_two_processes_find_what_one_finds(tmp_path):
    experiments = [Synthetic("Balance1", quick=True), Synthetic("Imbalance2", quick=True)]
    if DATA:
        experiments.append(Public("SEA", quick=True))
    one = _results(tmp_path / "one", *experiments, data=DATA)
    two = _results(tmp_path / "two", *experiments, data=DATA, jobs=2)
    assert one == two


def test_progress_is_told_after_each_run(tmp_path):
    told = []
    _results(tmp_path, Counting([]), progress=lambda one, done, total: told.append((one.name, done, total)))
    assert told == [("counting", done, 3) for done in range(4)]
