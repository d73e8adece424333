"""kill -9, in small; benchmarks/kafka_kill.py does it at full size on a real broker."""

from kafka_broker import started


def test_members_killed_at_random_moments_lose_no_event_and_no_drift(tmp_path):
    broker = started()
    from kafka_kill import run

    try:
        found = run(
            broker,
            tmp_path,
            keys=300,
            unsteady=6,
            kills=3,
            broker_kills=0,
            zombies=1,
            ends=1,
            seed=1,
            rate=1_500,
            most=25_000,
            session=4_000,
            pause=(0.5, 2.0),
            patience=180,
        )
    finally:
        broker.close()
    assert not found.wrong, found.wrong
    assert (found.kills, found.zombies, found.ended) == (3, 1, 1)
    assert found.produced >= found.drifts > 0
