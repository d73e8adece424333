"""Where a drift is: the slice that carries it, alone or of two columns, and none where the fall is everywhere."""

import numpy as np
import pytest

import fourrates as fr
from fourrates.slices import Condition, find_slices

SIZE = 30_000


def rows(seed, fall, **changed):
    """Eight idle columns besides `x`, `z` and `amount`; the rows of `changed` fall in the last third."""
    random = np.random.default_rng(seed)
    columns = {f"c{i}": random.choice(list("abcdef"), SIZE) for i in range(8)}
    columns |= {name: random.choice(["a", "b", "c", "d"], SIZE, p=[0.2, 0.2, 0.3, 0.3]) for name in "xz"}
    columns["amount"] = random.lognormal(size=SIZE)
    after = np.arange(SIZE) >= SIZE * 2 // 3
    inside = after.copy()
    for name, test in changed.items():
        inside &= test(columns[name])
    hard = np.where(columns["c1"] == "a", 0.7, 0.85)  # a slice that is harder, before and after
    return columns, after, random.random(SIZE) < hard - fall * inside


def is_a(column):
    return column == "a"


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"x": is_a}, (Condition("x", "a"),)),
        ({"x": is_a, "z": is_a}, (Condition("x", "a"), Condition("z", "a"))),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_slice_that_fell_is_first_and_alone(changed, where, seed):
    found = find_slices(*rows(seed, 0.3, **changed))
    assert [(one.where, one.significant) for one in found] == [(where, True)]
    assert found[0].carried > 0.5
    assert found[0].before.value - found[0].after.value == pytest.approx(0.3, abs=0.08)


def test_a_range_of_numbers_is_one_slice():
    columns, after, right = rows(4, 0.3, amount=lambda amount: amount > 2)
    (found,) = find_slices(columns, after, right)
    assert found.where[0].column == "amount"
    assert str(found).startswith("amount >= ")


def test_two_slices_that_fell_are_both_found():
    columns, after, right = rows(5, 0.3, x=is_a)
    right &= ~(after & (columns["c3"] == "b") & (np.random.default_rng(6).random(SIZE) < 0.35))
    assert {one.where for one in find_slices(columns, after, right)} == {
        (Condition("x", "a"),),
        (Condition("c3", "b"),),
    }


def test_a_fall_everywhere_is_in_no_slice():
    """At most one in ten draws by design: two of twelve happen in 34 % then, five in 1 %."""
    found = [find_slices(*rows(seed, 0.1))[0] for seed in range(12)]
    assert sum(one.significant for one in found) < 5


def test_missing_values_and_rare_ones_are_no_slices():
    columns, after, right = rows(7, 0.3, x=is_a)
    columns["x"] = [None if i % 7 == 0 else value for i, value in enumerate(columns["x"].tolist())]
    columns["ids"] = np.arange(SIZE).astype(str)
    assert find_slices(columns, after, right)[0].where == (Condition("x", "a"),)
    assert find_slices({"ids": columns["ids"]}, after, right) == []


def frame(size=60_000):
    random = np.random.default_rng(8)
    truth = random.random(size) < 0.2
    country = random.choice(["DE", "FR", "US"], size)
    fallen = (np.arange(size) >= size // 2) & (country == "FR")
    right = random.random(size) < np.where(truth, np.where(fallen, 0.5, 0.8), 0.97)
    return {
        "y_true": truth * 1,
        "y_pred": np.where(right, truth, ~truth) * 1,
        "country": country,
        "device": random.choice(["ios", "web"], size),
        "model": np.where(np.arange(size) % 2, "m1", "m2"),
    }


@pytest.mark.parametrize("form", ["columns", "csv", "parquet"])
def test_the_findings_of_any_source_know_their_slices(form, tmp_path):
    pa, csv, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".csv", ".parquet"))
    source = frame()
    if form != "columns":
        table, path = pa.table(source), tmp_path / f"log.{form}"
        csv.write_csv(table, path) if form == "csv" else parquet.write_table(table, path, row_group_size=7_000)
        source = path
    found = fr.detect(source)
    (best,) = found.slices("country", "device")
    assert (best.where, best.significant) == ((Condition("country", "FR"),), True)
    assert best.to_dict()["where"] == {"country": "FR"}
    assert str(best).startswith("country = FR: tpr 0.")
    assert str(best).endswith(f"of the fall, of {best.after.n:,} positives")
    (chance,) = found.slices("device", drift=found.drifts[0])
    assert chance.significant is False
    assert str(chance).startswith("no values stand out; the first, device = ")


@pytest.mark.parametrize("order", ["prediction", "arrival"])
def test_with_late_labels_slices_are_those_of_the_predictions(order):
    source = frame()
    size = source["y_true"].size
    ids = np.arange(size)
    arrived = np.argsort(ids + np.random.default_rng(9).random(size) * 500)[:-300]  # a few never
    labels = {"id": ids[arrived], "y_true": source.pop("y_true")[arrived]}
    found = fr.detect(source | {"id": ids}, labels_from=labels, order=order)
    (best,) = found.slices("country", "device")
    assert (best.where, best.significant) == ((Condition("country", "FR"),), True)
    assert best.before.n + best.after.n > 3_500


def test_a_drift_in_a_segment_is_looked_for_among_its_own_rows():
    data = frame()
    found = fr.detect(data, by="model")
    drift = next(drift for drift in found.drifts if drift.segment == "m1")
    (best,) = found.slices("country", drift=drift)
    mine = (data["model"] == "m1") & (data["country"] == "FR") & (data["y_true"] == 1)
    assert best.where == (Condition("country", "FR"),)
    assert best.before.n + best.after.n == mine.sum()


def test_columns_that_are_not_there_and_no_drift():
    stable = {"y_true": [0, 1] * 200, "y_pred": [0, 1] * 200, "country": ["DE"] * 400}
    assert fr.detect(stable).slices("country") == []
    with pytest.raises(ValueError, match="no column 'city'"):
        fr.detect(frame()).slices("city")
