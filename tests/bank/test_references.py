"""References by key: in a bank, in frames and files, on the command line; saved, merged, evicted."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fourrates as fr
from fourrates.state import pack, unpack

REFERENCES = {"a": [[900, 100], [200, 800]], "b": [[500, 500], [100, 900]]}
BY_KEY = {"a": (0.9, 0.8), "b": (0.5, 0.9), "c": (0.7, 0.7)}


def events(size=12_000, seed=1, bad=None):
    """Keys a, b and c in turns, each with its own rates; one of them may be bad from the first event on."""
    random = np.random.default_rng(seed)
    keys = random.choice(list(BY_KEY), size)
    truth = random.random(size) < 0.5
    rates = np.array([BY_KEY[key] for key in keys.tolist()])
    right = np.where(truth, rates[:, 1], rates[:, 0])
    if bad is not None:
        right = np.where((keys == bad) & truth, 0.4, right)
    return keys, truth, truth ^ (random.random(size) > right)


def bank(**settings):
    return fr.Bank(arl=100_000, reference=REFERENCES, **settings)


def test_each_key_is_compared_with_its_own_reference():
    keys, truth, pred = events(bad="a")
    found = bank().update(keys, truth, pred)
    assert {one.key for one in found} == {"a"}
    assert [(change.rate, change.direction) for change in found[0].finding.changes] == [("tpr", "down")]
    assert found[0].finding.at < 200
    assert not fr.Bank(arl=100_000).update(keys, truth, pred)


def test_a_bank_gives_what_a_detector_for_each_key_gives():
    keys, truth, pred = events(bad="b", seed=2)
    held = bank()
    found = held.update(keys, truth, pred)
    for key in BY_KEY:
        detector = fr.FourRates(100_000, reference=REFERENCES.get(key))
        own = keys == key
        assert detector.update_many(truth[own], pred[own]) == [one.finding for one in found if one.key == key]
        assert held[key].record_bytes[32:] == detector.record_bytes[32:]
        assert held[key].parameters == detector.parameters
        assert held[key].status == detector.status


def test_a_key_without_a_reference_is_compared_with_its_own_past():
    keys, truth, pred = events(bad="c", seed=3)
    held = bank()
    assert not [one for one in held.update(keys, truth, pred) if one.key == "c"]
    assert held["c"].parameters["reference"] is None
    keys, truth, pred = events(seed=4)
    assert [one.key for one in held.update(keys, truth, pred)] == ["c"]
    assert held["c"].open.changes[0].direction == "up"
    held.accept("c")
    assert held["c"].status == "stable"


def test_after_restart_is_for_all_keys():
    keys, truth, pred = events(bad="a", seed=5)
    held = fr.Bank(fr.FourRates(100_000, after="restart"), reference=REFERENCES)
    assert len([one for one in held.update(keys, truth, pred) if one.key == "a"]) == 1
    assert held["a"].status == "stable"


@pytest.mark.parametrize("after", ["hold", "restart"])
@pytest.mark.parametrize("way", ["bytes", "pickle", "file"])
def test_references_are_saved_those_of_keys_to_come_too(way, after, tmp_path):
    keys, truth, pred = events(bad="a", seed=6)
    early = keys != "b"
    held = fr.Bank(fr.FourRates(100_000, after=after), reference=REFERENCES)
    held.update(keys[early], truth[early], pred[early])
    if way == "bytes":
        revived = fr.Bank.from_bytes(held.to_bytes())
    elif way == "pickle":
        revived = pickle.loads(pickle.dumps(held))
    else:
        held.save(tmp_path / "bank")
        revived = fr.Bank.load(tmp_path / "bank")
    keys, truth, pred = events(bad="b", seed=7)
    found = revived.update(keys, truth, pred)
    assert found == held.update(keys, truth, pred)
    assert "b" in {one.key for one in found}
    assert revived.to_bytes() == held.to_bytes()


def test_an_evicted_key_has_its_reference_when_it_comes_back():
    keys, truth, pred = events(seed=8)
    held = bank()
    held.update(keys, truth, pred)
    held.evict(["a"])
    assert held["b"].rates["tpr"].baseline.value == pytest.approx(0.9, abs=0.02)
    keys, truth, pred = events(bad="a", seed=9)
    assert {one.key for one in held.update(keys, truth, pred)} == {"a"}


def test_merged_banks_have_the_references_of_both():
    keys, truth, pred = events(seed=10)
    one, other = fr.Bank(arl=100_000, reference={"a": REFERENCES["a"]}), fr.Bank(arl=100_000, reference=REFERENCES)
    for held, own in ((one, keys == "a"), (other, keys != "a")):
        held.update(keys[own], truth[own], pred[own])
    one.merge(other)
    whole = bank()
    whole.update(keys, truth, pred)
    keys, truth, pred = events(bad="b", seed=11)
    drifts = [(found.key, found.finding) for found in one.update(keys, truth, pred)]
    assert drifts == [(found.key, found.finding) for found in whole.update(keys, truth, pred)]
    with pytest.raises(ValueError, match="two references that differ"):
        fr.Bank(arl=100_000, reference={"b": [[1, 2], [3, 4]]}).merge(_only_d())
    with pytest.raises(ValueError, match="references by key"):
        fr.Bank(arl=100_000).merge(_only_d())


@pytest.mark.parametrize("way", [0, 1])
def test_a_stream_without_a_reference_does_not_get_one_by_merging(way):
    banks = [fr.Bank(fr.FourRates(1000), reference={"b": REFERENCES["a"]}), fr.Bank(fr.FourRates(1000), reference={})]
    banks[0].update(["a"], [1], [1])
    banks[1].update(["b"], [1], [1])
    before = [one.to_bytes() for one in banks]
    with pytest.raises(ValueError, match="key 'b' is in the bank already, without a reference"):
        banks[way].merge(banks[1 - way])
    assert [one.to_bytes() for one in banks] == before


def _only_d():
    held = bank()
    held.update(["d"], [1], [1])
    return held


def test_one_reference_for_all_keys():
    held = fr.Bank(arl=100_000, reference=REFERENCES["a"])
    keys, truth, pred = events(seed=12)
    found = held.update(keys, truth, pred)
    assert {one.key for one in found} == {"b", "c"}
    assert held.detector.parameters["after"] == "hold"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference": {"a": [[1, 2], [3]]}}, "key 'a': reference"),
        ({"reference": {"a": [[0, 0], [1, 3]]}}, "key 'a': reference has no event of class 0"),
        ({"reference": REFERENCES, "detector": fr.LFR()}, "must be a FourRates"),
        ({"reference": REFERENCES["a"], "detector": fr.LFR()}, "must be a FourRates"),
    ],
)
def test_what_cannot_be_a_reference_is_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        fr.Bank(**settings)


def test_a_record_with_another_reference_than_it_can_have_is_refused():
    held = bank()
    held.update(["a"], [1], [1])
    saved = held.to_bytes()
    number = np.float32(1000).tobytes() + np.float32(900).tobytes()
    assert number in saved
    found = unpack(saved)
    sections = {name: bytes(part) for name, part in found.sections.items()}
    sections["records"] = sections["records"].replace(number, np.float32(1000).tobytes() + np.float32(1001).tobytes())
    with pytest.raises(ValueError, match="holds no counts"):
        fr.Bank.from_bytes(pack("Bank", found.about, **sections))


def test_a_reference_that_is_not_the_one_its_stream_holds_is_refused():
    held = bank()
    held.update(["a"], [1], [1])
    found = unpack(held.to_bytes())
    sections = {name: bytearray(part) for name, part in found.sections.items()}
    sections["references"][:8] = (int.from_bytes(sections["references"][:8], "little") + 1).to_bytes(8, "little")
    with pytest.raises(ValueError, match="the stream of key 'a' holds another reference than the key has"):
        fr.Bank.from_bytes(pack("Bank", found.about, **sections))


def test_pairs_count_in_the_order_of_the_labels_whichever_is_positive():
    truth, pred = ["spam"] * 10 + ["ham"] * 20, ["spam"] * 8 + ["ham"] * 22
    for positive in ("spam", "ham"):
        detector = fr.FourRates(labels=["spam", "ham"], positive=positive, reference=(truth, pred))
        assert detector.parameters["reference"] == [[8, 2], [0, 20]]
        assert detector.rates["tpr"].baseline.value == (0.8 if positive == "spam" else 1.0)


# Frames, files and the command line ---------------------------------------------------------------------------------


def validation(seed=20):
    keys, truth, pred = events(6_000, seed)
    kept = keys != "c"
    return {"shop": keys[kept], "label": truth[kept].astype(int), "prediction": pred[kept].astype(int)}


def frame(bad=None, seed=21):
    keys, truth, pred = events(bad=bad, seed=seed)
    return {"shop": keys, "label": truth.astype(int), "prediction": pred.astype(int)}


def test_a_frame_with_the_by_column_gives_each_stream_its_reference_and_says_who_has_none():
    found = fr.detect(frame(bad="b"), by="shop", reference=validation(), arl=100_000)
    assert {drift.segment for drift in found.drifts} == {"b"}
    assert any(
        "1 of 3 segments is not in the reference" in sentence and "(c)" in sentence for sentence in found.messages
    )
    assert fr.detect(frame(bad="b"), by="shop", reference=REFERENCES, arl=100_000).drifts[0].segment == "b"


def test_a_reference_without_the_by_column_is_one_for_all():
    own = validation()
    kept = own["shop"] == "a"
    one = {name: own[name][kept] for name in ("label", "prediction")}
    found = fr.detect(frame(), by="shop", reference=one, arl=100_000)
    assert {one.segment for one in found} == {"b", "c"}


def written(path, columns):
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


@pytest.mark.slow
def test_the_command_line_takes_a_file_of_references_by_stream_and_goes_on_with_them(tmp_path):
    data, reference = written(tmp_path / "d.csv", frame(bad="a")), written(tmp_path / "r.csv", validation())
    saved = str(tmp_path / "state")
    call = [sys.executable, "-m", "fourrates", "detect", data, "--by", "shop", "--budget", "100000"]
    call += ["--state", saved]
    done = subprocess.run([*call, "--reference", reference], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 of 3 segments is not in the reference" in done.stderr
    assert "tpr" in done.stdout
    with open(data, "a") as more:
        more.write(Path(data).read_text().splitlines(keepends=True)[1])
    again = subprocess.run([*call, "--reference", reference], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    other = written(tmp_path / "o.csv", validation(seed=99))
    refused = subprocess.run([*call, "--reference", other], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "only --budget can be changed" in refused.stderr
