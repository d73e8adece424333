"""A reference of pairs in the order in which they came: how much its errors cluster is known from the first event."""

import numpy as np
import pytest

import fourrates as fr


def thrice(random, size):
    truth = np.repeat(random.random(size // 3) < 0.3, 3)
    return truth, truth ^ np.repeat(random.random(size // 3) < 0.1, 3)


def test_the_clustering_of_an_ordered_reference_is_known_at_the_first_event():
    thirds, shuffled = [], []
    for seed in range(15):
        reference = thrice(np.random.default_rng(seed), 30_000)
        order = np.random.default_rng(seed).permutation(30_000)
        for found, pairs in (thirds, reference), (shuffled, (reference[0][order], reference[1][order])):
            detector = fr.FourRates(reference=pairs)
            detector.update(0, 0)
            found.append(detector.rates["tnr"].dispersion)
    assert 2.8 < np.median(thirds) < 3.7  # 3.2 as it counts
    assert min(thirds) > 2.5
    assert np.median(shuffled) == 1
    assert max(shuffled) < 1.5


def test_young_clustered_streams_alarm_less_with_an_ordered_reference():
    random, alarms = np.random.default_rng(3), {"counts": 0, "pairs": 0}
    for _ in range(40):
        truth, pred = thrice(random, 42_000)
        pairs = truth[:30_000], pred[:30_000]
        counts = np.bincount(2 * pairs[0] + pairs[1], minlength=4).reshape(2, 2)
        for name, reference in (("counts", counts), ("pairs", pairs)):
            drifts = fr.FourRates(20_000, reference=reference).update_many(truth[30_000:], pred[30_000:])
            alarms[name] += len(drifts)
    assert alarms["pairs"] < 0.6 * alarms["counts"]
    assert alarms["pairs"] < 40 * 12_000 / 20_000 * 2


def test_what_a_reference_showed_is_kept_in_settings_and_states():
    detector = fr.FourRates(labels=["a", "b", "c"], reference=(list("abcabcabc") * 50, list("abbacabca") * 50))
    for other in (detector.clone(), fr.FourRates.from_bytes(detector.to_bytes()), fr.FourRates(**detector.parameters)):
        assert other.parameters == detector.parameters
        assert other.record_bytes == detector.record_bytes


@pytest.mark.parametrize("given", [[], [1, 2], [[[1] * 8, [256] * 8]] * 4, [[[-1.0] * 8, [3] * 8]] * 4, [["x"]]])
def test_blocks_that_no_reference_showed_are_refused(given):
    with pytest.raises(ValueError, match="dispersion is neither"):
        fr.FourRates(dispersion=given)
