"""What comes from outside and means harm: labels, keys, arrays that change, files that have no end."""

import contextlib
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fourrates as fr
from fourrates import io, null
from fourrates.baselines import DDM, DDMOCI, EDDM, NFR, PerfSim, ThreeMeasures
from fourrates.labels import Labels

PRIME = 2**61 - 1  # Python's hash of an integer is the integer modulo this
DETECTORS = [
    fr.FourRates,
    fr.LFR,
    DDM,
    DDMOCI,
    EDDM,
    NFR,
    PerfSim,
    ThreeMeasures,
]


@contextmanager
def within(seconds):
    """Raise where something hangs."""

    def stop(*_):
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("labels", "array", "codes"),
    [
        ([2**63 - 1, 2**63], np.array([2**63, 2**63 - 1], np.uint64), [1, 0]),
        ([2**63 - 1, 2**63 + 4], np.array([2**63], np.uint64), None),
        ([2**53, 2**53 + 2], np.array([2**53 + 1], np.uint64), None),
        ([2**53, 2**53 + 1], np.array([2**53 + 1, 2**53]), [1, 0]),
        ([0.5, 2**53 + 1], np.array([2**53]), None),
        ([0.5, 2**53 + 1], np.array([2**53 + 1]), [1]),
        ([2**53, 2**53 + 1], np.array([2.0**53]), [0]),
        ([-1, 2**64 - 1], np.array([-1]), [0]),
        ([-1, 2**64 - 1], np.array([2**64 - 1], np.uint64), [1]),
        ([1.5, 10**400], np.array([1.5]), [0]),
        (["a", "a\0"], np.array(["a"]), [0]),
        ([float("inf"), 1], np.array([np.inf, 1.0]), [0, 1]),
    ],
)
def test_labels_are_compared_exactly(labels, array, codes):
    known = Labels(labels)
    if codes is None:
        with pytest.raises(ValueError, match=r"^position 0: .* is not one of"):
            known.encode(array, "y_true")
    else:
        assert known.encode(array, "y_true").tolist() == codes
    assert known.encode(array.tolist(), "y_true").tolist() == codes if codes else True


@pytest.mark.parametrize("unit", ["ns", "us", "s", "D"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_are_no_labels(kind, unit):
    times = np.array([0, 1], f"{kind}[{unit}]")
    with pytest.raises(TypeError, match=rf"y_true is an array of .*\[{unit}\]: times cannot be labels"):
        DDM().update_many(times, times)
    with pytest.raises(TypeError, match="times cannot be labels"):
        DDM().update_many(pd.Series(times.astype(f"{kind}[ns]")), [0, 1])
    with pytest.raises(ValueError, match="is not one of"):
        DDM().update(times[1], times[1])
    with pytest.raises(ValueError, match=r"^position 1: .* is not one of"):
        DDM().update_many([0, times[1]], [0, 1])
    with pytest.raises(ValueError, match="cannot be a label"):
        DDM(labels=times)


class Meddling:
    """A key that uses its bank whenever it is asked for its hash or compared; at first it does nothing."""

    def __init__(self, meddle, calls):
        self.meddle, self.calls = meddle, calls

    def __hash__(self):
        self.calls -= 1
        if self.calls == 0:
            self.meddle()
        return 7


@pytest.mark.parametrize("calls", [1, 2, 3])  # before the bank is touched, and while its keys are
@pytest.mark.parametrize("how", ["update", "evict", "merge", "start_period", "save"])
def test_a_key_that_uses_its_bank_leaves_it_as_it_was_or_as_if_it_had_come_first(calls, how, tmp_path):
    bank = fr.Bank(arl=1_000)
    bank.update(["a", "b", 3], [0, 1, 0], [0, 1, 1])
    other = fr.Bank(arl=1_000)
    other.update(["z"], [0], [0])
    meddle = {
        "update": lambda: bank.update(["x", "y"], [0, 1], [1, 1]),
        "evict": lambda: bank.evict(["b"]),
        "merge": lambda: bank.merge(other),
        "start_period": bank.start_period,
        "save": lambda: bank.save(tmp_path / "bank"),
    }[how]
    before, refused = bank.to_bytes(), ""
    try:
        bank.update([Meddling(meddle, calls), "q"], [0, 1], [0, 1])
    except RuntimeError as error:
        refused = str(error)
    assert ("is using this bank" in refused) == (calls > 1)
    if refused:
        assert bank.to_bytes() == before
    assert len(bank) == len([*bank]) == len(bank._arena.heads()["key"])
    assert bank.update(["q", "a"], [0, 1], [0, 1]) == []
    assert len({*bank}) == len(bank)


def test_a_merge_that_would_be_too_large_leaves_the_bank_as_it_was():
    bank, other = fr.Bank(arl=1_000, max_streams=3), fr.Bank(arl=1_000)
    bank.update(["a", "b"], [0, 1], [0, 1])
    other.update(["c", "d"], [0, 1], [0, 1])
    before = bank.to_bytes()
    with pytest.raises(ValueError, match="4 streams; this bank holds at most 3"):
        bank.merge(other)
    with pytest.raises(ValueError, match="cannot be merged with itself"):
        bank.merge(bank)
    assert bank.to_bytes() == before


def keys_of_one_hash(kind, size):
    if kind == "numbers":
        return [PRIME * (8 + i) for i in range(size)]
    return [*itertools.islice(itertools.product([PRIME * i for i in range(8)], repeat=5), size)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "tuples"])
def test_keys_chosen_to_have_one_hash_cost_no_more_than_others(kind):
    size = 20_000  # as one chain, 200 million comparisons: ten seconds at best
    chosen = keys_of_one_hash(kind, size)
    assert len({hash(key) for key in chosen}) == 1
    with within(10):
        bank = fr.Bank(arl=1_000)
        bank.update(chosen, [0] * size, [0] * size)
        assert len(fr.Bank.from_bytes(bank.to_bytes())) == size


def test_keys_that_are_equal_are_one_key():
    bank = fr.Bank(arl=1_000)
    same = [(1, 2**70), (True, 2.0**70), (np.int64(1), 2**70), (1.0, 2**70)]
    bank.update([*same, 2**70, 2.0**70, 0.5, np.float64(0.5), ("1", 2**70)], [0] * 9, [0] * 9)
    assert [*bank] == [(1, 2**70), 2**70, 0.5, ("1", 2**70)]
    again = fr.Bank.from_bytes(bank.to_bytes())
    assert [*again] == [*bank]
    assert all(key in again for key in same)


def flickering(array, values, stop):
    """Write to an array over and over, as another process does to memory that is shared."""
    while not stop.is_set():
        for value in values:
            array[:] = value


@pytest.mark.slow
@pytest.mark.parametrize("take", ["detector", "coded", "bank", "bank coded", "keys"])
def test_an_array_that_changes_while_it_is_read_is_taken_or_refused(take):
    size, stop = 20_000, threading.Event()
    coded = take.endswith("coded")
    kind = np.uint16 if coded else np.int64
    truth, pred, keys = np.zeros(size, kind), np.zeros(size, kind), np.zeros(size, np.int64)
    changing, values = (keys, (0, 2**40, 5, -(2**60))) if take == "keys" else (truth, (0, 60_000, 1))
    thread = threading.Thread(target=flickering, args=(changing, values, stop))
    thread.start()
    bank, refused = fr.Bank(arl=100_000), []
    try:
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            try:
                if take == "detector":
                    fr.FourRates().update_many(truth, pred)
                elif take == "coded":
                    fr.FourRates().update_coded(truth, pred)
                else:
                    (bank.update_coded if coded else bank.update)(keys, truth, pred)
            except ValueError as error:
                refused.append(str(error))
    finally:
        stop.set()
        thread.join()
    assert all("is not" in text for text in refused)
    assert {*bank} <= {0, 2**40, 5, -(2**60)}
    assert sum(bank[key].events for key in bank) == bank.events
    assert fr.Bank.from_bytes(bank.to_bytes()).to_bytes() == bank.to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", DETECTORS)
def test_a_detector_is_used_by_one_thread_at_a_time(kind):
    random = np.random.default_rng(4)
    truth = random.integers(0, 2, 2_000_000)
    pred = np.where(random.random(truth.size) < 0.9, truth, 1 - truth)
    detector = kind()
    detector.update_many(truth[:1000], pred[:1000])
    saved = detector.to_bytes()
    calls = (lambda: detector.update(1, 1), detector.to_bytes, detector.reset, lambda: pickle.dumps(detector))
    refused = 0
    for _ in range(100):  # a batch may be over before this thread gets its turn
        thread = threading.Thread(target=detector.update_many, args=(truth, pred))
        thread.start()
        while thread.is_alive():
            for call in calls:
                try:
                    call()
                except RuntimeError as error:
                    refused += "another thread is using this detector" in str(error)
        thread.join()
        if refused:
            break
    assert refused > 0
    assert type(detector).from_bytes(saved).to_bytes() == saved


@pytest.mark.slow
def test_a_bank_is_used_by_one_thread_at_a_time_and_stays_whole():
    random = np.random.default_rng(5)
    bank, refused = fr.Bank(arl=100_000), []
    end = time.monotonic() + 1

    def use(seed):
        draws = np.random.default_rng(seed)
        while time.monotonic() < end:
            keys = draws.integers(0, 2**62, 300)
            try:
                bank.update(keys.tolist() if seed % 2 else keys, *draws.integers(0, 2, (2, 300)))
                bank.evict(idle=2_000)
                bank.to_bytes()
            except RuntimeError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=use, args=(int(seed),)) for seed in random.integers(0, 99, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused
    assert all("another thread is using this bank" in text for text in refused)
    assert len({*bank}) == len(bank)
    assert fr.Bank.from_bytes(bank.to_bytes()).to_bytes() == bank.to_bytes()


def test_a_file_that_has_no_end_is_no_bank(tmp_path):
    path = tmp_path / "bank"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with within(5), pytest.raises(ValueError, match=r"bank: a state of more than 1,073,741,824 bytes \(max_state\)"):
        fr.Bank.load(path)
    bank = fr.Bank(arl=1_000)
    bank.update(["a"], [0], [0])
    bank.save(tmp_path / "small")
    with pytest.raises(ValueError, match="more than 100 bytes"):
        fr.Bank.load(tmp_path / "small", max_state=100)
    os.mkfifo(tmp_path / "pipe")
    with within(5), pytest.raises(ValueError, match="not a state"):
        fr.Bank.load(tmp_path / "pipe")


@pytest.mark.parametrize("made", ["endless", "pipe"])
def test_a_table_in_the_cache_that_has_no_end_is_rebuilt(tmp_path, monkeypatch, made):
    monkeypatch.setenv("FOURRATES_CACHE", str(tmp_path))
    null._table.cache_clear()
    wanted = null.table(0.6, (0.01,)).lower(0, 30, 20)
    (path,) = tmp_path.iterdir()
    path.unlink()
    null._table.cache_clear()
    if made == "pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with within(30):
        assert null.table(0.6, (0.01,)).lower(0, 30, 20) == wanted


def test_bytes_that_change_after_they_were_checked_are_not_used():
    """A state given as memory of the caller's is copied: what he does to it later is nothing to the detector."""
    detector = fr.FourRates(1_000)
    detector.update_many([0, 1] * 50, [0, 1] * 50)
    shared = bytearray(detector.to_bytes())
    again = fr.FourRates.from_bytes(shared)
    shared[:] = bytes(len(shared))
    assert again.to_bytes() == detector.to_bytes()


@pytest.mark.slow
def test_coded_events_cost_the_same_however_many_drifts_they_hold():
    """Each call looks at what it takes, not at the whole batch: 200,000 events with drifts all along."""
    size = 200_000
    truth = np.ones(size, np.uint16)
    pred = (np.arange(size) // 60 % 2).astype(np.uint16)
    detector, done, findings = fr.FourRates(arl=100, dispersion=1), 0, []
    with within(20):
        while done < size:
            taken, found = detector.update_coded(truth, pred, done)
            done += taken
            findings += found
    whole = fr.FourRates(arl=100, dispersion=1)
    assert len(whole.update_many(truth, pred)) > 500
    assert findings == list(whole.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        *((kind, 120) for kind in ("csv", "tsv", "jsonl", "parquet", "arrow", "states", "cache")),
        *(("spools", 60), ("commands", 80)),
    ],
)
def test_a_changed_file_is_read_or_refused_and_nothing_else_happens(benchmark, kind, count):
    """Some seconds of what `make fuzz` does for minutes."""
    outcomes, wrong = benchmark("fuzz_files").fuzz(kind, count, seed=3)
    assert wrong == {}
    assert outcomes.total() == count


def written(path, streams=5):
    rows = [f"{i % 2},{i % 2},s{i % streams}" for i in range(200)]
    path.write_text("\n".join(["y_true,y_pred,model", *rows]) + "\n")
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("long", ["predictions", "labels"])
def test_a_line_of_late_labels_or_their_predictions_is_bounded(tmp_path, long):
    predictions, labels = tmp_path / "predictions.jsonl", tmp_path / "labels.jsonl"
    predictions.write_text('{"id": 1, "y_pred": 1}\n{"id": 2, "y_pred": 0}\n')
    labels.write_text('{"id": 1, "y_true": 1}\n{"id": 2, "y_true": 0}\n')
    call = [sys.executable, "-m", "fourrates", "detect", predictions, "--labels-from", labels]
    assert subprocess.run(call, capture_output=True).returncode == 0
    with (tmp_path / f"{long}.jsonl").open("a") as file:
        file.write('{"id": 3, "y_true": 1, "y_pred": 1, "note": "' + "x" * (1 << 24) + '"}\n')
    refused = subprocess.run(call, capture_output=True, text=True)
    assert refused.returncode == 2
    assert f"{long}.jsonl, line 3: longer than 16,777,216 bytes" in refused.stderr


@pytest.mark.slow
def test_a_line_and_a_state_are_bounded(tmp_path):
    data, state = written(tmp_path / "data.jsonl"), tmp_path / "state"
    Path(data).write_text('{"y_true": 1, "y_pred": 1}\n' * 50)
    call = [sys.executable, "-m", "fourrates", "detect", data, "--state", str(state)]
    assert subprocess.run(call, capture_output=True).returncode == 0
    with state.open("ab") as file:
        file.truncate((1 << 30) + 1)
    refused = subprocess.run(call, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "state: a state of more than 1,073,741,824 bytes" in refused.stderr
    state.unlink()
    with open(data, "a") as file:
        file.write('{"y_true": 1, "y_pred": 1, "note": "' + "x" * (1 << 24) + '"}\n')
    refused = subprocess.run(call, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "longer than 16,777,216 bytes" in refused.stderr


@pytest.mark.slow
def test_nothing_goes_over_the_network_unasked(tmp_path):
    """No socket is made by a run that writes all it can write."""
    watch = "import sys; sys.addaudithook(lambda event, _: event.startswith('socket.') and sys.exit('a socket'))\n"
    run = "from fourrates.cli import main; main()"
    data = written(tmp_path / "data.csv")
    words = ["detect", data, "--by", "model", "--report", tmp_path / "a.html"]
    words += ["--csv", tmp_path / "a.csv", "--state", tmp_path / "state"]
    done = subprocess.run([sys.executable, "-c", watch + run, *words], capture_output=True, text=True)
    assert (done.returncode, "socket" in done.stderr) == (0, False), done.stderr
    other = subprocess.run([sys.executable, "-c", watch + "import socket; socket.socket()"], capture_output=True)
    assert other.returncode != 0  # so it would have been seen


@pytest.mark.parametrize(
    "time", ["2024-01-01T00:00:00:00", "2024-01-01T00:00:00 z", "2024-01-01T00:00z", "1e300", "inf", "-9e18", "9" * 400]
)
def test_a_time_that_is_none_is_read_without_a_warning(time):
    events = io.read({"y_true": [0, 1, 1], "y_pred": [0, 1, 0], "time": [time, time, time]})
    with contextlib.suppress(io.InputError):
        assert sum(batch.truths.size for batch in events) == 3
