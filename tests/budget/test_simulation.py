"""Any detector, run until its run length or its delay is known."""

import math

import pytest

import fourrates as fr
from fourrates.baselines import DDM, DDMOCI, EDDM, NFR, PerfSim, ThreeMeasures
from fourrates.budget.simulation import simulated_delay

SOUND, BROKEN = [[45, 5], [5, 45]], [[45, 5], [30, 20]]
EVERY = [
    fr.LFR,
    NFR,
    DDM,
    DDMOCI,
    EDDM,
    PerfSim,
    ThreeMeasures,
]


@pytest.mark.parametrize("kind", EVERY)
def test_every_detector_can_be_simulated(kind):
    delay = simulated_delay(kind(), SOUND, BROKEN, streams=20, history=500, horizon=500)
    assert delay.streams == 20
    assert 0.0 <= delay.within(500) <= 1.0
    found = fr.budget.expected_run_length(kind(), SOUND, alarms=5, limit=20_000)
    assert found.events <= 20_000


def test_same_seed_same_result_and_the_detector_is_left_alone():
    detector = fr.LFR(detect=1e-3)
    first, again, other = (fr.budget.expected_run_length(detector, SOUND, 50, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert detector.events == 0


@pytest.mark.slow
def test_the_standard_error_is_what_repeated_runs_show():
    detector = fr.LFR(detect=2e-3)
    runs = [fr.budget.expected_run_length(detector, SOUND, 100, seed=seed) for seed in range(16)]
    means = [run.mean for run in runs]
    centre = sum(means) / 16
    spread = math.sqrt(sum((mean - centre) ** 2 for mean in means) / 15)
    told = sum(run.standard_error for run in runs) / 16
    # A deviation from 16 values is itself off by 18 %; three of those.
    assert 0.46 <= spread / told <= 1.54


def test_a_detector_that_never_alarms_stops_at_the_limit():
    found = fr.budget.expected_run_length(fr.LFR(), [[1, 0], [0, 1]], limit=50_000)
    assert (found.mean, found.standard_error, found.alarms, found.events) == (math.inf, math.inf, 0, 50_000)


def test_labels_of_any_kind_give_the_same_as_numbers():
    plain = simulated_delay(fr.LFR(), SOUND, BROKEN, streams=20, history=500)
    named = simulated_delay(fr.LFR(labels=["yes", "no"], positive="yes"), SOUND, BROKEN, streams=20, history=500)
    assert (plain.found == named.found).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: fr.budget.expected_run_length(fr.LFR(), SOUND, alarms=0),
        lambda: fr.budget.expected_run_length(fr.LFR(), SOUND, limit=0),
        lambda: simulated_delay(fr.LFR(), SOUND, BROKEN, streams=0),
        lambda: simulated_delay(fr.LFR(), SOUND, BROKEN, history=-1),
        lambda: simulated_delay(fr.LFR(), SOUND, BROKEN, horizon=0),
    ],
)
def test_nothing_to_simulate_is_refused(call):
    with pytest.raises(ValueError, match="at least"):
        call()


def test_the_smallest_fall_is_found_in_time_and_a_smaller_one_is_not():
    from fourrates.budget.falls import falls, smallest_fall

    counts = [[72_000, 8_000], [4_000, 16_000]]
    detector = fr.FourRates(100_000, reference=counts)
    fall = smallest_fall(detector, counts, which=1, within=2_000)
    points = round(100 * (fall.before - fall.after))
    assert fall.median <= 2_000
    (smaller,) = falls(detector, counts, [points - 1], classes=[1], history=0, horizon=2_000)
    assert smaller.median is None
    assert smallest_fall(detector, counts, which=1, within=2_000, most=points - 3) is None
