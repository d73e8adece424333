"""The kernel's step against the oracle's: the same evidence and the same findings, event by event."""

import numpy as np
import pytest
from oracle import Oracle

import fourrates as fr


def drawn(seed, classes, size):
    """A stream that nobody chose: recalls and mix change at random moments, and errors may repeat."""
    random = np.random.default_rng(seed)
    truth, pred = np.empty(size, int), np.empty(size, int)
    edges = np.sort(random.integers(0, size, random.integers(1, 6)))
    first = 1 - np.exp(random.uniform(np.log(0.02), np.log(0.5), classes))
    mix = random.dirichlet(np.full(classes, 4.0))
    repeat = random.choice([0.0, 0.0, 0.4])
    last = {}
    recalls, now = first, mix
    for i in range(size):
        if i in edges:
            odds = np.log(first / (1 - first)) + random.choice([0, 0, -1, 1], classes) * random.uniform(
                0.3, 2.0, classes
            )
            recalls = first if random.random() < 0.4 else 1 / (1 + np.exp(-odds))
            now = mix if random.random() < 0.7 else random.dirichlet(np.full(classes, 4.0))
        c = int(random.choice(classes, p=now))
        right = last[c] if c in last and random.random() < repeat else bool(random.random() < recalls[c])
        last[c] = right
        truth[i], pred[i] = c, c if right else (c + 1 + random.integers(classes - 1)) % classes
    return truth, pred


def settings(seed):
    random = np.random.default_rng(1_000 + seed)
    classes = int(random.choice([2, 2, 2, 3, 5]))
    given = {"arl": float(random.choice([300, 1_000, 5_000, 50_000]))}
    given["sides"] = str(random.choice(["both", "both", "down", "up"]))
    given["mix"] = str(random.choice(["report", "alarm", "ignore"]))
    given["dispersion"] = [None, None, 1.0, 1.7][random.integers(4)]
    if random.random() < 0.5:
        given["reference"] = (random.integers(1, 40, (classes, classes)) + np.eye(classes, dtype=int) * 200).tolist()
    given["tolerance"] = float(random.choice([0.0, 0.0, 0.02, 0.06]))
    given["strata"] = [None, None, 3, 7][random.integers(4)]
    given["learning"] = given["sides"] == "both" and bool(random.random() < 0.3)
    if seed >= 80:  # events that were drawn for labelling
        classes = 2
        if "reference" in given:
            given["reference"] = [[180, 20], [9, 91]]
        given |= {"tolerance": 0.0, "strata": None, "learning": False, "sampled": True, "mix": "report"}
    return classes, given


def strata_of(seed, given, size):
    """In runs, as days are, the last of them seldom."""
    random = np.random.default_rng(2_000 + seed)
    if "sampled" in given:  # the ratio of two probabilities, another one every day
        return np.repeat(random.integers(*((60, 190) if seed % 2 else (110, 120)), size // 50 + 1), 50)[:size].tolist()
    if given["strata"] is None:
        return None
    return np.repeat(np.minimum(random.geometric(0.4, size // 20 + 1) - 1, given["strata"] - 1), 20)[:size].tolist()


def outcome(finding, names):
    """A finding as the oracle has it: its kind, and the rates it is about with their observations."""
    if finding.kind == "shift":
        return "shift", {}
    return finding.kind, {names.index(change.rate): change.after.n for change in finding.changes}


@pytest.mark.parametrize("seed", range(140))
def test_the_kernel_and_the_oracle_agree_on_evidence_and_findings(seed):
    classes, given = settings(seed if seed < 120 else seed - 120)
    truths, preds = drawn(seed, classes, 2_500)
    names = list(fr.FourRates(labels=range(classes)).rates)
    watched = None if seed < 120 else [c != seed % classes for c in range(classes)]  # all recalls but one
    rates = None if watched is None else [name for name, one in zip(names, watched, strict=False) if one]
    detector = fr.FourRates(labels=range(classes), rates=rates, **given)
    oracle = Oracle(classes, watched=watched, **given)
    strata = strata_of(seed, given, truths.size)
    for i, (truth, pred) in enumerate(zip(truths.tolist(), preds.tolist(), strict=True)):
        detector.update(truth, pred, None if strata is None else strata[i])
        told = oracle.step(truth, pred, 0 if strata is None else strata[i])
        found = [outcome(finding, names) for finding in detector.findings]
        assert [(kind, [*about]) for kind, about in found] == [(kind, [*about]) for kind, about in told], f"event {i}"
        for (kind, about), (_, expected) in zip(found, told, strict=True):
            for c, n in about.items():  # the start of a drift is rounded to an observation, as is what drawn ones count
                assert abs(n - expected[c][0]) <= (kind == "drift" or "sampled" in given), f"event {i}"
        states = [detector.rates[name].state for name in names[:classes]] if found else []
        assert states == [recall.condition for recall in oracle.recalls[: len(states)]], f"event {i}"
        if i % 50 == 0 and not found:
            assert detector.evidence * oracle.threshold == pytest.approx(oracle.evidence, rel=2e-3, abs=1e-3)


def test_the_oracle_meets_every_kind_of_finding():
    kinds = set()
    for seed in range(80):
        classes, given = settings(seed)
        detector = fr.FourRates(labels=range(classes), **given)
        detector.update_many(*drawn(seed, classes, 2_500), strata=strata_of(seed, given, 2_500))
        kinds |= {finding.kind for finding in detector.findings}
    assert kinds == {"drift", "confirmation", "withdrawal", "recovery", "improvement", "shift"}
