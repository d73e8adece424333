"""Data that can be read but means something else than it seems to: each oddity is named, and nothing else is said."""

import subprocess
import sys

import numpy as np
import pytest

import fourrates as fr
from fourrates import io

SIZE = 3_000


@pytest.fixture
def table(tmp_path):
    """Write columns as a file; what is not given is a classifier that works, on one event a minute."""
    random = np.random.default_rng(1)
    truth = (random.random(SIZE) < 0.1).astype(int)
    pred = np.where(random.random(SIZE) < 0.9, truth, 1 - truth)
    words = np.array(["ok", "fraud"])
    times = np.datetime64("2026-01-01T00:00") + np.arange(SIZE)
    sound = {"time": times.astype(str), "label": words[truth], "pred": words[pred]}

    def write(separator=",", without=(), **columns):
        given = {name: column for name, column in (sound | columns).items() if name not in without}
        path = tmp_path / "data.csv"
        rows = zip(*given.values(), strict=True)
        lines = [separator.join(given), *(separator.join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
        return path

    write.truth, write.sound = truth, sound
    return write


def remarks(ran):
    """What was said besides the columns, the classes and the budget."""
    assert ran.status == 0, ran.err
    return [line for line in ran.err.splitlines() if not line.startswith(("labels in", "classes from", "budget"))]


def test_of_sound_data_nothing_is_said(fourrates, table):
    assert remarks(fourrates("detect", table())) == []


def test_the_much_rarer_of_two_words_is_the_positive_one(fourrates, table):
    ran = fourrates("detect", table())
    assert "classes from the data: ok, fraud; fraud, the rarer, is the positive one (--positive)" in ran.err
    assert "ok, fraud; ok is the positive one\n" in fourrates("detect", table(), "--positive", "ok").err.replace(
        "fraud, ok", "ok, fraud"
    )


def test_of_two_words_that_are_about_as_frequent_the_last_in_the_alphabet_is(fourrates, table):
    words = np.array(["spam", "ham"])[np.arange(SIZE) % 2]
    assert "ham, spam; spam is the positive one" in fourrates("detect", table(label=words, pred=words)).err


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_decimal_comma_is_read_as_one(fourrates, table, separator):
    scores = [f"{0.1 + 0.8 * one:.2f}" for one in table.truth]
    with_points = fourrates("detect", table(separator, ("pred",), score=scores), "--json")
    path = table(separator, ("pred",), score=[one.replace(".", ",") for one in scores])
    with_commas = fourrates("detect", path, "--json")
    assert with_commas.out.replace(str(path), "") == with_points.out.replace(str(path), "").replace(
        '"messages": []', '"messages": []'
    )
    assert remarks(with_commas) == ["scores have a decimal comma: '0,10' is read as 0.10"]


def test_rows_without_a_label_are_counted(fourrates, table):
    labels = np.where(np.arange(SIZE) < 2_000, table.sound["label"], "")
    assert remarks(fourrates("detect", table(label=labels))) == ["1,000 of 3,000 rows skipped: no label"]
    preds = np.where(np.arange(SIZE) % 1000 == 5, "", table.sound["pred"])
    both = remarks(fourrates("detect", table(label=labels, pred=preds), "--bad", "skip"))
    assert both == ["1,002 of 3,000 rows skipped: 1,000 have no label, 2 are bad"]


def test_no_label_at_all_is_refused_with_the_way_out(fourrates, table):
    ran = fourrates("detect", table(label=[""] * SIZE))
    assert ran.status == 2
    assert "none of 3,000 rows has a label; if labels arrive later, name their file with --labels-from" in ran.err


def test_times_that_run_backwards_are_noticed_with_their_place(fourrates, table):
    times = table.sound["time"].copy()
    times[1_500:1_510] = times[:10]
    (told,) = remarks(fourrates("detect", table(time=times)))
    assert told.startswith("times run backwards once, in ")
    assert "data.csv, row 1,501 (2026-01-01 00:00:00 after 2026-01-02 00:59:00)" in told
    (told,) = remarks(fourrates("detect", table(time=table.sound["time"][::-1])))
    assert told.startswith("times run backwards 2,999 times, first in ")


def test_streams_one_after_the_other_are_in_order(fourrates, table):
    path = table(time=np.tile(table.sound["time"][: SIZE // 3], 3), model=np.repeat(["a", "b", "c"], SIZE // 3))
    assert remarks(fourrates("detect", path, "--by", "model")) == []
    assert len(remarks(fourrates("detect", path))) == 1


def test_a_segment_that_goes_back_in_time_is_noticed_wherever_its_rows_are_cut():
    times = np.datetime64("2026-01-01T00:00", "us") + np.arange(6)
    frame = {"y_true": [0, 1] * 3, "y_pred": [0, 1] * 3, "time": times, "who": list("abcabc")}
    frame["time"][4] = times[0]  # after b's time in row 2
    whole = io.read(frame, columns=io.Columns(by="who"))
    parts = [{name: column[at : at + 2] for name, column in frame.items()} for at in (0, 2, 4)]
    cut = io.read(frame, columns=io.Columns(by="who"))
    for _ in whole:
        pass
    for table in [table for part in parts for table in io.read(part).tables()]:
        for _ in cut.batch(table):
            pass
    assert whole.warnings.backwards == cut.warnings.backwards == 1
    assert whole.warnings.largest_step == cut.warnings.largest_step == np.timedelta64(1, "us")


def test_a_threshold_that_nothing_passes_or_everything_is_noticed(fourrates, table):
    scores = [f"{0.02 + 0.05 * one:.2f}" for one in table.truth]
    path = table(without=("pred",), score=scores)
    none = "no score reaches the threshold 0.5, the highest is 0.07: every prediction is 'ok'; set --threshold"
    assert remarks(fourrates("detect", path)) == [none]
    every = "every score reaches the threshold 0.01, the lowest is 0.02: every prediction is 'fraud'; set --threshold"
    assert remarks(fourrates("detect", path, "--threshold", "0.01")) == [every]
    assert remarks(fourrates("detect", path, "--threshold", "0.05")) == []


def test_one_class_only_is_noticed(fourrates, table):
    path = table(label=np.zeros(SIZE, int), pred=np.arange(SIZE) % 2)
    assert remarks(fourrates("detect", path)) == ["every true label is 0, so nothing is known of the other classes"]
    path = table(label=np.arange(SIZE) % 2, pred=np.zeros(SIZE, int))
    assert remarks(fourrates("detect", path)) == ["every prediction is 0; is this the right column (--pred)?"]


def test_watch_says_the_same_at_its_end_and_each_once(fourrates, table):
    scores = [f"{0.02 + 0.05 * one:.2f}".replace(".", ",") for one in table.truth]
    times = table.sound["time"].copy()
    times[1_500:1_510] = times[:10]
    labels = np.where(np.arange(SIZE) < 2_000, "ok", "")
    path = table(";", ("pred",), score=scores, time=times, label=labels)
    words = ("--classes", "ok,fraud")
    told = remarks(fourrates("detect", path, *words))
    assert [sentence.split(" ", 2)[0] for sentence in told] == ["1,000", "scores", "times", "every", "no"]
    with open(path) as file:
        ran = fourrates("watch", "-", *words, stdin=file)
    here, there = (f"{name}, row" for name in (path, "standard input"))
    assert ran.status == 0
    for sentence in told:
        assert ran.err.count(sentence.replace(here, there)) == 1
    assert "2,000 events in" in ran.err


def test_watch_does_not_wait_for_the_end(table):
    command = [sys.executable, "-m", "fourrates", "watch", str(table(pred=["ok"] * SIZE))]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        told = next(line for line in process.stderr if line.startswith("every"))  # of a file that is still followed
        process.terminate()
    assert told == "every prediction is 'ok'; is this the right column (--pred)?\n"


def test_python_says_the_same(table):
    frame = table.sound | {"time": table.sound["time"][::-1]}
    said = fr.detect({name: column.tolist() for name, column in frame.items()}).messages
    assert any(one.startswith("times run backwards 2,999 times, first in frame, row 2") for one in said)


@pytest.fixture
def late(tmp_path, table):
    """Predictions and their labels in files of their own: one never comes, one comes twice, one has no prediction."""
    predictions, labels = tmp_path / "predictions.csv", tmp_path / "labels.csv"
    rows = zip(table.sound["time"], table.sound["pred"], strict=True)
    predictions.write_text("id,time,y_hat\n" + "".join(f"t{i},{time},{one}\n" for i, (time, one) in enumerate(rows)))
    order = np.random.default_rng(2).permutation(SIZE - 1)
    lines = [f"t{i},{table.sound['label'][i]}\n" for i in order]
    labels.write_text("id,outcome\n" + "".join([*lines, "t5,ok\n", "t999999,ok\n"]))
    return predictions, labels


def test_the_classes_of_late_labels_come_from_the_data_and_what_is_left_over_is_counted(fourrates, late):
    predictions, labels = late
    ran = fourrates("detect", predictions, "--labels-from", labels)
    assert "classes from the data: ok, fraud; fraud, the rarer, is the positive one (--positive)" in ran.err
    assert "1 prediction waits for a label, 1 label has no prediction, 1 label arrived twice" in ran.err
    assert "in 2,999 events" in ran.out


def test_in_python_late_labels_need_no_labels_either(late):
    predictions, labels = late
    found = fr.detect(predictions, labels_from=labels, positive="ok")
    assert found.watch.detector.labels.values == ("fraud", "ok")
    assert found.events == SIZE - 1
