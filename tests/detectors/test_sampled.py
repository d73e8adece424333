"""FourRates for events that were drawn for labelling: evidence and rates are about all events."""

import numpy as np
import pytest

import fourrates as fr

CELLS = np.array([[0.882, 0.018], [0.03, 0.07]])  # tnr .98, tpr .7, a tenth positives
WORSE = np.array([[0.864, 0.036], [0.03, 0.07]])  # tnr .96


def labelled(random, size, probabilities, cells=CELLS):
    """Labelled events, drawn with these probabilities by predicted class; constant, or (size, 2)."""
    weights = (cells[None] * np.broadcast_to(probabilities, (size, 2))[:, None, :]).reshape(size, 4).cumsum(1)
    return np.divmod((random.random((size, 1)) * weights[:, 3:] >= weights[:, :3]).sum(1), 2)


def daily(random, size):
    return np.repeat(np.exp(random.uniform(np.log(0.005), 0, (size // 50 + 1, 2))), 50, 0)[:size]


@pytest.mark.parametrize("reference", [None, [[9_800, 200], [300, 700]]])
def test_rates_are_those_of_all_events_whatever_is_labelled(reference):
    """20 streams, intervals at 90 %: fewer than 14 of them hold with probability .002."""
    random, held = np.random.default_rng(1), np.zeros(4)
    for _ in range(20):
        probabilities = daily(random, 3_000)
        detector = fr.FourRates(1e6, sampled=True, reference=reference)
        assert not detector.update_many(*labelled(random, 3_000, probabilities), probability=probabilities)
        rates = detector.rates
        for i, (name, truth) in enumerate({"tnr": 0.98, "tpr": 0.7, "npv": 0.882 / 0.912, "ppv": 0.07 / 0.088}.items()):
            held[i] += rates[name].now.lower <= truth <= rates[name].now.upper
    assert (held >= 14).all()


def test_probabilities_that_change_every_day_do_not_look_like_a_drift():
    """40 times the budget's events: 40 alarms asked for; 57 or more of a Poisson of 40 have probability .006."""
    random, alarms, blind = np.random.default_rng(2), 0, 0
    for _ in range(8):
        probabilities = daily(random, 10_000)
        pairs = labelled(random, 10_000, probabilities)
        alarms += len(fr.FourRates(2_000, sampled=True, after="restart").update_many(*pairs, probability=probabilities))
        blind += len(fr.FourRates(2_000, after="restart").update_many(*pairs))
    assert (
        alarms < 57 < blind / 2
    )  # not as many as might be: days that differ are dispersion to who knows nothing of them


def test_labels_drawn_evenly_are_not_taken_for_clustered_ones():
    """Also just after a restart, as its rate becomes known; rounding that adds up made it 1.5 on average."""
    random, found = np.random.default_rng(7), []
    for _ in range(8):
        detector = fr.FourRates(20_000, sampled=True, after="restart")
        truth = random.random(200_000) < 0.4
        right = random.random(truth.size) < np.where(truth, 0.8, 0.95)
        detector.update_many(truth, truth == right, probability={0: 0.05, 1: 0.05})
        found.append(detector.rates["tnr"].dispersion)
    assert np.mean(found) < 1.2


def test_a_fall_is_found_and_told_as_it_is_among_all_events():
    random = np.random.default_rng(3)
    pairs = [labelled(random, 5_000, [0.04, 0.3], cells) for cells in (CELLS, WORSE)]
    detector = fr.FourRates(100_000, sampled=True)
    drifts = detector.update_many(*np.hstack(pairs), probability={0: 0.04, 1: 0.3})
    assert [(change.rate, change.direction) for change in drifts[-1].changes] == [("tnr", "down")]
    before, after = drifts[-1].levels["tnr"]
    assert before.lower < 0.98 < before.upper
    assert after.lower < 0.96 < after.upper
    now, normal = detector.rates["tnr"].now, detector.rates["tnr"].normal
    assert now.upper < normal.lower
    assert abs(now.value - 0.96) < 0.005
    assert detector.rates["tnr"].state == "confirmed"


def test_one_at_a_time_in_bytes_and_in_a_bank_it_is_the_same():
    random = np.random.default_rng(4)
    probabilities = daily(random, 4_000)
    pairs = [labelled(random, 2_000, probabilities[:2_000]), labelled(random, 2_000, probabilities[2_000:], WORSE)]
    truth, pred = np.hstack(pairs)
    whole = fr.FourRates(2_000, sampled=True)
    whole.update_many(truth, pred, probability=probabilities)
    one, found = fr.FourRates(2_000, sampled=True), []
    for i in range(truth.size):
        one.update_many(truth[i : i + 1], pred[i : i + 1], probability=probabilities[i : i + 1])
        found += one.findings
        if i % 500 == 0:
            one = fr.FourRates.from_bytes(one.to_bytes())
    assert tuple(found) == whole.findings
    assert one.record_bytes == whole.record_bytes
    bank = fr.Bank(fr.FourRates(2_000, sampled=True))
    bank.update(np.zeros(truth.size, int), truth, pred, probability=probabilities)
    assert [keyed.finding for keyed in bank.findings] == found


@pytest.mark.parametrize(
    ("given", "probability", "message"),
    [
        ({}, {0: 1, 1: 1}, "for FourRates\\(sampled=True\\)"),
        ({"sampled": True}, None, "probability= must give"),
        ({"sampled": True}, {0: 1}, "probability: for each of"),
        ({"sampled": True}, [[0.5, 0.0]], "of event 0 is not above 0"),
        ({"sampled": True}, [[0.001, 1.0]], "more than 256 times the other"),
        ({"sampled": True}, [0.5], "has shape"),
        ({"sampled": True, "tolerance": 0.02}, None, "sampled and tolerance: not both"),
        ({"sampled": True, "mix": "alarm"}, None, "mix='alarm' cannot go with sampled"),
        ({"sampled": True, "labels": ["a", "b", "c"]}, None, "for two labels only"),
    ],
)
def test_what_does_not_go_together_is_named(given, probability, message):
    with pytest.raises(ValueError, match=message):
        fr.FourRates(**given).update_many([1], [1], probability=probability)


def test_a_saved_state_loads_however_unequal_the_draws_and_with_a_reference():
    detector = fr.FourRates(sampled=True, reference=[[213, 32], [9, 231]])
    truth = np.zeros(20, int)
    detector.update_many(truth, truth, probability={0: 0.9, 1: 0.1})
    assert fr.FourRates.from_bytes(detector.to_bytes()).record_bytes == detector.record_bytes
