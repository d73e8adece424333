"""A pair belongs to the version of the model that predicted it, however late its label comes."""

from itertools import pairwise

import numpy as np
import pytest

import fourrates as fr
from fourrates import io
from fourrates.watch.versions import BLOCK, MOST_VERSIONS

TPR, TNR = 0.8, 0.95
REFERENCE = [[9_500, 500], [200, 800]]


def log(size=40_000, deployed=20_000, tpr=(TPR, TPR), seed=1, fall=None):
    """Predictions of v1 and from `deployed` on of v2, with a tpr each; that of both falls."""
    random = np.random.default_rng(seed)
    truth = (random.random(size) < 0.2).astype(int)
    second = np.arange(size) >= deployed
    rate = np.where(second, tpr[1], tpr[0])
    if fall is not None:
        rate = np.where(np.arange(size) >= fall[0], fall[1], rate)
    right = random.random(size) < np.where(truth == 1, rate, TNR)
    time = np.datetime64("2026-01-01") + np.arange(size) * np.timedelta64(60, "s")
    version = np.where(second, "v2", "v1")
    return {"y_true": truth, "y_pred": np.where(right, truth, 1 - truth), "time": time, "version": version}


def rows(data, which):
    return {name: column[which] for name, column in data.items()}


def taken(watch, data, cuts=()):
    size = len(data["y_true"])
    edges = [0, *cuts, size]
    found = []
    for start, stop in pairwise(edges):
        found += watch.update(rows(data, slice(start, stop)))
    return watch, found


def watch_of(**more):
    return fr.Watch(fr.FourRates(500_000), time="time", version="version", **more)


def test_each_version_is_compared_with_its_own_normal():
    """v2 is better from its first event: nothing moved in either."""
    watch, found = taken(watch_of(), log(tpr=(0.7, 0.9), seed=10))
    assert not found
    assert watch.version == "v2"
    assert watch.now().rates["tpr"].normal.value > 0.87
    assert [(one.version, one.event, one.serves) for one in watch.now().deployments] == [
        ("v1", 0, False),
        ("v2", 20_000, True),
    ]


def test_a_fall_of_the_second_version_is_its_own():
    _, found = taken(watch_of(), log(60_000, 10_000, fall=(40_000, 0.6)))
    drift = next(finding for finding in found if finding.kind == "drift")
    assert drift.version == "v2"
    assert abs(drift.started - 30_000) < 1_000  # events of v2
    assert abs(drift.started_time - np.datetime64("2026-01-01") - np.timedelta64(40_000, "m")) < np.timedelta64(1, "D")


def test_the_open_drift_of_a_version_is_accepted_when_another_has_taken_over():
    watch, found = taken(watch_of(), log(tpr=(TPR, TPR), fall=(10_000, 0.6)))
    last = [finding for finding in found if finding.version == "v1"][-1]
    assert last.kind == "acceptance"
    assert last.closes
    assert last.drift.version == "v1"
    assert 20_000 < last.row <= 20_000 + 2 * BLOCK
    assert watch.now().status == "stable"


def test_late_labels_of_a_retired_version_are_reported_as_its_own_and_stay_closed():
    """Labels in the order of arrival: those of v1 come when v2 has long served."""
    data = log(fall=(15_000, 0.5))
    watch = watch_of()
    assert {finding.kind for finding in watch.predict(data)} == {"prediction_shift"}  # the fall, before any label
    assert watch.version == "v2"
    early, late = rows(data, slice(0, 14_000)), rows(data, slice(14_000, 20_000))
    found = watch.update(early, predicted=False) + watch.update(late, predicted=False)
    assert [(finding.kind, finding.version) for finding in found][:1] == [("drift", "v1")]
    assert found[-1].kind == "acceptance"
    assert watch.now().status == "stable"
    assert not watch.open_since


def test_a_version_that_predicts_again_goes_on_from_its_own_normal():
    data = log(60_000, 60_000)
    data["version"][20_000:25_000] = "v2"
    watch, found = taken(watch_of(), data)
    assert not found
    assert [one.serves for one in watch.deployments] == [True, False]
    assert watch.version == "v1"
    assert watch.now().rates["tpr"].n > 10_000


def test_two_versions_side_by_side_both_stay():
    data = log(40_000, 0, fall=(20_000, 0.5))
    data["version"] = np.where(np.random.default_rng(3).random(40_000) < 0.1, "canary", "main")
    watch, _ = taken(watch_of(), data)
    assert {drift.drift.version for drift in watch.now().open} == {"canary", "main"}
    assert all(one.serves for one in watch.deployments)


@pytest.mark.parametrize("by", [None, "country"])
def test_wherever_the_stream_is_cut_and_saved_the_findings_are_the_same(by):
    data = log(fall=(12_000, 0.6))
    data["version"][30_000:31_000] = "v3"
    data["country"] = np.array(["de", "fr"])[np.random.default_rng(1).integers(0, 2, 40_000)]
    whole, found = taken(watch_of(by=by, overall=None if by is None else fr.FourRates(500_000)), data)
    assert any(finding.kind == "acceptance" for finding in found)
    cuts = np.sort(np.random.default_rng(2).integers(0, 40_000, 9)).tolist()
    again, parts = watch_of(by=by, overall=None if by is None else fr.FourRates(500_000)), []
    for start, stop in zip([0, *cuts], [*cuts, 40_000], strict=True):
        again = fr.Watch.from_bytes(again.to_bytes())
        parts += again.update(rows(data, slice(start, stop)))
    # rows are counted in each piece
    same = [[(one.kind, one.at, one.version, one.segment, one.time) for one in several] for several in (found, parts)]
    assert sorted(same[0], key=str) == sorted(same[1], key=str)
    assert again.now().rates == whole.now().rates
    assert again.deployments == whole.deployments


def test_a_reference_is_that_of_the_first_version_and_others_have_their_own():
    data = log(60_000, 20_000, tpr=(0.8, 0.6))
    watch = fr.Watch(fr.FourRates(500_000, reference=REFERENCE), time="time", version="version")
    assert not taken(watch, data)[1]
    assert watch.detector.parameters["reference"] is None
    own = fr.Watch(fr.FourRates(500_000), time="time", version="version", version_references={"v2": REFERENCE})
    assert [finding.version for finding in taken(own, data)[1]][:1] == ["v2"]
    by = fr.Watch(
        fr.FourRates(500_000), "country", time="time", version="version", version_references={"v2": {"de": REFERENCE}}
    )
    data["country"] = np.full(60_000, "de")
    assert [finding.where for finding in taken(by, data)[1]][:1] == ["de of v2"]


def test_old_versions_leave_and_a_column_of_ids_is_refused():
    size = 3 * MOST_VERSIONS
    data = log(size * 2 * BLOCK, 0)
    data["version"] = np.repeat(np.arange(size), 2 * BLOCK)
    watch, _ = taken(watch_of(), data)
    assert len(watch.deployments) == MOST_VERSIONS
    assert fr.Watch.from_bytes(watch.to_bytes()).events == len(data["y_true"])
    data["version"] = np.arange(len(data["version"]))
    with pytest.raises(io.InputError, match="versions predict at once"):
        taken(watch_of(), data)


def test_detect_takes_versions_with_labels_that_come_later():
    """Twenty days late, v1 fallen before v2 came: whatever is found is v1's."""
    data = log(60_000, 40_000, fall=None, seed=5)
    random = np.random.default_rng(5)
    fallen = (np.arange(60_000) >= 30_000) & (data["version"] == "v1") & (data["y_true"] == 1)
    data["y_pred"] = np.where(fallen & (random.random(60_000) < 0.3), 0, data["y_pred"])
    predictions = {"id": np.arange(60_000), **{name: data[name] for name in ("y_pred", "time", "version")}}
    labels = {
        "id": np.arange(60_000),
        "y_true": data["y_true"],
        "label_time": data["time"] + random.integers(15, 26, 60_000) * np.timedelta64(1, "D"),
    }
    order = np.argsort(labels["label_time"], kind="stable")
    labels = {name: column[order] for name, column in labels.items()}
    for how in ("prediction", "arrival"):
        found = fr.detect(
            predictions, version="version", labels_from=labels, id="id", arl=500_000, order=how, season=None
        )
        assert {drift.version for drift in found.drifts} == {"v1"}
        assert found.now().to_json()["deployments"][1]["version"] == "v2"
    reference = {"y_true": data["y_true"], "y_pred": data["y_pred"], "version": data["version"]}
    found = fr.detect(data, version="version", reference=reference, arl=500_000, season=None)
    assert {*found.watch.version_references} == {"v1", "v2"}


def test_a_segment_that_only_the_old_version_met_is_reported_and_drawn_nowhere(tmp_path):
    data = log(60_000, 30_000, fall=(20_000, 0.6))
    random = np.random.default_rng(1)
    data["country"] = np.where(np.arange(60_000) < 30_000, np.array(["de", "old"])[random.integers(0, 2, 60_000)], "de")
    found = fr.detect(data, version="version", by="country", arl=100_000, season=None)
    assert "old of v1" in {drift.where for drift in found.drifts}
    found.report(tmp_path / "page.html")
    assert "old of v1" in found.summary()
    assert {record["version"] for record in found.to_dict()["findings"]} == {"v1", "v2"}
    assert found._repr_html_()
