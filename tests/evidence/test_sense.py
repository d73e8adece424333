"""Findings make sense: nothing starts after it was found, what fell is lower, evidence has reached its bound."""

import numpy as np
import pytest

import fourrates as fr

SIZE = 12_000


def stream(seed):
    """Recalls that move for a while, classes that shift half of the time; two to four classes."""
    rng = np.random.default_rng(seed)
    classes = int(rng.choice([2, 2, 3, 4]))
    y_true = rng.choice(classes, SIZE, p=rng.dirichlet(np.full(classes, 2.0)))
    if rng.random() < 0.5:
        y_true[6_000:] = rng.choice(classes, SIZE - 6_000, p=rng.dirichlet(np.full(classes, 2.0)))
    normal = rng.uniform(0.6, 0.995, classes)
    moved = np.clip(normal + rng.normal(0, 0.12, classes), 0.3, 0.998)
    away = (np.arange(SIZE) > 4_000) & (np.arange(SIZE) < 8_000)
    right = rng.random(SIZE) < np.where(away, moved[y_true], normal[y_true])
    other = (y_true + rng.integers(1, classes, SIZE)) % classes
    mix = str(rng.choice(["report", "alarm"])) if classes == 2 else "report"
    detector = fr.FourRates(float(rng.choice([500, 2_000, 20_000])), labels=range(classes), mix=mix)
    return detector, y_true, np.where(right, y_true, other)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_findings_do_not_contradict_themselves(seed):
    detector, y_true, y_pred = stream(seed)
    for start in range(0, SIZE, 97):
        detector.update_many(y_true[start : start + 97], y_pred[start : start + 97])
        for finding in detector.findings:
            first, last = finding.started_between or (0, finding.at)
            started = finding.at if finding.started is None else finding.started
            assert first <= started <= last <= finding.at, finding
            for change in finding.changes if finding.kind in ("drift", "recovery", "improvement") else ():
                if change.before.n and change.after.n:
                    fell = change.after.value < change.before.value
                    assert fell == (change.direction == "down"), finding
            for change in finding.changes if finding.kind == "drift" else ():
                assert change.statistic >= change.bound, finding
