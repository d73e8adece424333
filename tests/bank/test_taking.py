"""Threads share a batch, and nothing that is found depends on how many."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.bank import taking
from fourrates.bank.taking import Batch


def keyed_events(streams, size, seed=0):
    """Keys in random order with pairs; half-way every third stream goes wrong and the classes shift in every fifth."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, streams, size)
    late = np.arange(size) >= size // 2
    truth = random.random(size) < np.where(late & (keys % 5 == 0), 0.7, 0.3)
    pred = truth ^ (random.random(size) < np.where(late & (keys % 3 == 0), 0.6, 0.1))
    return keys, truth, pred


@pytest.mark.parametrize(
    "detector", [fr.FourRates(2_000), fr.FourRates(2_000, reference=[[90, 10], [10, 90]]), fr.LFR(arl=2_000)], ids=repr
)
def test_findings_and_states_do_not_depend_on_the_threads(detector, monkeypatch):
    monkeypatch.setattr(taking, "SHARE", 300)
    keys, truth, pred = keyed_events(streams=40, size=12_000)
    banks = [fr.Bank(detector) for _ in range(3)]
    found = []
    for bank, bank.threads in zip(banks, (1, 2, 7), strict=True):
        drifts, findings = [], []
        for start in range(0, keys.size, 4_000):
            batch = slice(start, start + 4_000)
            drifts += bank.update(keys[batch], truth[batch], pred[batch])
            findings += bank.findings
        found.append((drifts, findings, bank.to_bytes()))
    assert len(found[0][0]) > 10
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("streams", [1, 2, 3, 1_000])
def test_shares_are_whole_streams_and_leave_nothing_out(streams, threads, monkeypatch):
    monkeypatch.setattr(taking, "SHARE", 10)
    slots = np.sort(np.random.default_rng(streams).integers(0, streams, 400)).astype(np.int32)
    shares = Batch(slots, slots, slots, slots, 0).shares(threads)
    assert [one for share in shares for one in range(*share)] == list(range(400))
    assert len(shares) <= min(threads, streams, 40)
    assert all(slots[start - 1] < slots[start] for start, _ in shares[1:])


def test_a_few_events_are_not_worth_a_thread():
    slots = np.arange(2 * taking.SHARE - 1, dtype=np.int32)
    assert Batch(slots, slots, slots, slots, 0).shares(8) == [(0, slots.size)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bank_whose_batch_was_interrupted_can_be_saved_and_brought_back(threads, monkeypatch):
    monkeypatch.setattr(taking, "SHARE", 300)
    keys, truth, pred = keyed_events(streams=40, size=12_000)
    bank = fr.Bank(arl=2_000)
    bank.threads = threads

    settle = fr.FourRates._settle_record

    def interrupted(*given):
        settle(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fr.FourRates, "_settle_record", interrupted)  # at the first drift
        with pytest.raises(KeyboardInterrupt):
            bank.update(keys, truth, pred)
    again = fr.Bank.from_bytes(bank.to_bytes())
    assert again.events == bank.events == keys.size
    assert again.update(keys, truth, pred) == bank.update(keys, truth, pred)
