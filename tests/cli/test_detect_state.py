"""A stream cut anywhere and resumed gives the same drifts; a state file is whole at every moment."""

import json
import os
from itertools import pairwise

import numpy as np
import pytest
from placing import without_rows

import fourrates as fr
from fourrates import io
from fourrates.watch import Watch


def batches(stream, cuts):
    frame = {"y_true": stream.y_true, "y_pred": stream.y_pred, "time": stream.times}
    for start, end in zip([0, *cuts], [*cuts, stream.y_true.size], strict=True):
        yield from io.read({name: column[start:end] for name, column in frame.items()}, columns=io.Columns(time="time"))


@pytest.mark.slow
@pytest.mark.parametrize("detector", [fr.LFR(), fr.FourRates(50_000)], ids=["LFR", "FourRates"])
def test_a_stream_cut_anywhere_gives_the_same_drifts(stream, detector):
    whole = Watch(detector)
    wanted = without_rows(one for batch in batches(stream, []) for one in whole.update(batch))
    assert len(wanted) >= 2
    random = np.random.default_rng(1)
    starts = [one.at for one in wanted] + [one.since for one in wanted if one.kind == "drift"]
    edges = [start + d for start in starts for d in (-1, 0, 1, 2)]
    for cuts in [*([edge] for edge in edges), *(sorted(random.integers(1, 60_000, 5).tolist()) for _ in range(20))]:
        run = Watch(detector)
        found = []
        for batch in batches(stream, cuts):
            run = Watch.from_bytes(run.to_bytes())
            found += without_rows(run.update(batch))
        assert found == wanted, cuts
        assert run.events == 60_000


def without_places(drifts):
    """Files and rows differ."""
    places = ("source", "row", "started_row")
    return [{key: value for key, value in one.items() if key not in places} for one in drifts]


def text_of(rows, kind):
    """Rows of (time, truth, pred) as lines; the header apart."""
    if kind == "csv":
        return "timestamp,y_true,y_pred\n", [f"{t},{a},{b}\n" for t, a, b in rows]
    return "", [json.dumps({"timestamp": t, "y_true": a, "y_pred": b}) + "\n" for t, a, b in rows]


@pytest.fixture(scope="module")
def rows(stream):
    return [
        *zip(np.datetime_as_string(stream.times).tolist(), stream.y_true.tolist(), stream.y_pred.tolist(), strict=True)
    ]


@pytest.fixture
def detect(fourrates, tmp_path):
    """Run `detect --state` on a file; what it found, all events counted, and what it said."""

    def run(*words):
        ran = fourrates("detect", *words, "--json", "--state", tmp_path / "state")
        assert ran.status == 0, ran.err
        found = json.loads(ran.out)
        return found["findings"], found["events"], ran.err

    return run


CUTS = [0, 20_000, 36_050, 36_400, 60_000]


@pytest.fixture
def wanted(fourrates, drifting):
    # The default budget depends on the volume of the file it is chosen for, so it is named.
    return without_places(json.loads(fourrates("detect", drifting, "--json", "--budget", "50000").out)["findings"])


def test_files_in_turn_give_what_one_file_gives(detect, rows, wanted, tmp_path):
    header, lines = text_of(rows, "csv")
    found = []
    for day, (start, end) in enumerate(pairwise(CUTS)):
        part = tmp_path / f"day-{day}.csv"
        part.write_text(header + "".join(lines[start:end]))
        drifts, events, _ = detect(part, "--budget", "50000")
        assert events == end
        found += drifts
    assert without_places(found) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_file_of_lines_that_grows_goes_on_where_it_ended_and_half_a_line_is_left(
    detect, rows, wanted, tmp_path, kind
):
    header, lines = text_of(rows, kind)
    path, found = tmp_path / f"log.{kind}", []
    path.write_text(header)
    for start, end in pairwise(CUTS):
        text = "".join(lines[start:end])
        cut = len(text) - 5
        with path.open("a") as log:
            log.write(text[:cut])
        drifts, events, _ = detect(path, "--budget", "50000")
        assert events == end - 1
        found += drifts
        with path.open("a") as log:
            log.write(text[cut:])
    drifts, events, said = detect(path, "--budget", "50000")
    assert events == 60_000
    assert "has grown; resuming after row 59,999" in said
    assert without_places(found + drifts) == wanted
    assert {one["source"] for one in found} == {str(path)}
    whole = {one["at"] + 1 for one in wanted}
    assert {one["row"] for one in found} <= whole  # rows are counted from the beginning of the file


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv.gz"])
def test_a_file_written_again_with_more_rows_goes_on_behind_those_that_were_read(detect, rows, wanted, tmp_path, kind):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, feather, parquet

    path, found = tmp_path / f"scores.{kind}", []
    columns = [[row[i] for row in rows] for i in range(3)]
    columns[0] = np.array(columns[0], "M8[us]")
    for _, end in pairwise(CUTS):
        table = pyarrow.table({"timestamp": columns[0][:end], "y_true": columns[1][:end], "y_pred": columns[2][:end]})
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=7_000)
        elif kind == "arrow":
            feather.write_feather(table, path)
        else:
            with pyarrow.CompressedOutputStream(str(path), "gzip") as packed:
                csv.write_csv(table, packed)
        for again in (False, True):
            drifts, events, said = detect(path, "--budget", "50000")
            assert events == end
            assert ("was read before, and has not changed" in said) == again
            if again:
                assert drifts == []
            found += drifts
    assert without_places(found) == wanted


def test_the_same_file_twice_is_noticed_however_it_is_called(detect, drifting, tmp_path):
    copy, link = tmp_path / "copy.csv", tmp_path / "link.csv"
    copy.write_bytes(drifting.read_bytes())
    link.symlink_to(drifting)
    drifts, events, said = detect(drifting, link, "--budget", "50000")
    assert events == 60_000
    assert f"{link} is given twice; it is read once" in said
    assert len(drifts) >= 1
    for path in (drifting, link, copy):
        drifts, events, said = detect(path, "--budget", "50000")
        assert (drifts, events) == ([], 60_000)
        assert f"{path} was read before" in said
    os.utime(drifting)  # touched and the same
    assert detect(drifting)[1] == 60_000


def test_small_files_that_are_alike_are_not_taken_for_one(detect, tmp_path):
    for hour in range(3):
        path = tmp_path / f"{hour}.csv"
        path.write_text("y_true,y_pred\n1,1\n0,0\n")
        assert detect(path)[1] == 2 * (hour + 1)


def test_a_name_that_is_used_again_for_other_rows_is_a_new_file(detect, tmp_path):
    path = tmp_path / "today.csv"
    path.write_text("y_true,y_pred\n" + "1,1\n" * 50)
    detect(path)
    path.write_text("y_true,y_pred\n" + "0,0\n" * 60)
    _, events, said = detect(path)
    assert events == 110
    assert "holds something else than when it was read last; it is read as a new file" in said


def test_a_log_that_was_rotated_is_known_under_its_new_name(detect, tmp_path):
    log, old = tmp_path / "log.csv", tmp_path / "log.1.csv"
    log.write_text("y_true,y_pred\n" + "1,1\n" * 50)
    detect(log)
    with log.open("a") as file:
        file.write("0,0\n" * 7)
    log.rename(old)
    log.write_text("y_true,y_pred\n" + "0,0\n" * 3)
    assert detect(old, log)[1] == 60


def test_nothing_new_and_nothing_yet_are_no_errors(detect, fourrates, tmp_path):
    path, state = tmp_path / "log.csv", tmp_path / "state"
    path.write_text("")
    ran = fourrates("detect", path, "--state", state)
    assert (ran.status, state.exists()) == (0, False)
    assert "nothing to read yet" in ran.err
    path.write_text("y_true,y_pred\n")
    assert fourrates("detect", path, "--state", state).status == 0
    path.write_text("y_true,y_pred\n1,1\n")
    assert detect(path)[1] == 1
    ran = fourrates("detect", path, "--state", state)
    assert ran.out.splitlines()[0].startswith("Too few rows to say anything: ")
    assert ran.out.splitlines()[1:] == ["1 event"]
    assert "no new events" in ran.err


def test_columns_and_threshold_are_remembered_and_options_may_be_given_again(detect, fourrates, tmp_path):
    path, state = tmp_path / "a.csv", tmp_path / "state"
    lines = [f"2026-01-{1 + i // 50:02d},{i % 3},{i % 2},{i % 10 / 10}\n" for i in range(500)]
    path.write_text("day,shop,won,p\n" + "".join(lines))
    words = ["--truth", "won", "--score", "p", "--threshold", "0.3", "--time", "day", "--by", "shop"]
    words += ["--budget", "1 per month", "--detector", "FourRates"]
    assert detect(path, *words)[1] == 500
    for i, again in enumerate((words, [], ["--by", "shop"], ["--budget", "1 per month"])):
        with path.open("a") as file:
            file.writelines(f"2026-02-{1 + 7 * i:02d},1,1,0.35\n" for _ in range(10))
        assert detect(path, *again)[1] == 510 + 10 * i, again
    for other, why in (
        (["--by", "won"], "saved with column 'shop', not 'won'"),
        (["--threshold", "0.5"], "saved with the threshold 0.3"),
        (["--detector", "LFR"], "was saved with FourRates("),
    ):
        before = state.read_bytes()
        ran = fourrates("detect", path, *other, "--state", state)
        assert ran.status == 2
        assert why in ran.err
        assert state.read_bytes() == before


def test_many_streams_go_on_too(detect, fourrates, tmp_path):
    random = np.random.default_rng(5)
    lines = [f"{m},{t},{g}\n" for m, t, g in zip(*random.integers(0, 2, (3, 4000)).tolist(), strict=True)]
    text = ["model,y_true,y_pred\n", *lines]
    path, whole = tmp_path / "part.csv", tmp_path / "whole.csv"
    whole.write_text("".join(text))
    path.write_text("".join(text[:1700]))
    found = detect(path, "--by", "model")[0]
    with path.open("a") as file:
        file.writelines(text[1700:])
    found += detect(path)[0]
    wanted = json.loads(fourrates("detect", whole, "--by", "model", "--json").out)["findings"]
    assert [(one["segment"], one["at"]) for one in found] == [(one["segment"], one["at"]) for one in wanted]


@pytest.mark.slow
def test_another_detector_is_refused(fourrates, drifting, tmp_path):
    state = tmp_path / "state"
    assert fourrates("detect", drifting, "--state", state).status == 0
    ran = fourrates("detect", drifting, "--state", state, "--detector", "LFR(decay=0.8)")
    assert ran.status == 2
    assert "was saved with FourRates(arl=" in ran.err
    assert fourrates("detect", drifting, "--state", state, "--budget", "77777").status == 0
    assert fourrates("detect", drifting, "--state", state, "--detector", "FourRates").status == 0


@pytest.mark.slow
def test_a_state_changed_by_hand_is_refused_or_goes_on(fourrates, drifting, tmp_path):
    """The note of what was read, each value of it replaced by others, with a checksum that fits."""
    from fourrates.state import pack, unpack

    state = tmp_path / "state"
    fourrates("detect", drifting, "--state", state)
    saved = unpack(state.read_bytes())
    sound = dict(saved.about)
    for name in sound["files"][0]:
        for value in (None, -1, 2**70, "x", [], {}, 0.5, True):
            about = json.loads(json.dumps(sound))
            about["files"][0][name] = value
            state.write_bytes(pack(saved.kind, about, **saved.sections))
            assert fourrates("detect", drifting, "--state", state).status in (0, 2), (name, value)
    for name in sound:
        for value in (None, -1, "x", [1], {"by": 3}, {"truth": "y_true", "no": "x"}):
            state.write_bytes(pack(saved.kind, sound | {name: value}, **saved.sections))
            assert fourrates("detect", drifting, "--state", state).status in (0, 2), (name, value)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_detect_killed_at_any_moment_counts_every_row_once(benchmark, tmp_path):
    """Three kills here; benchmarks/kill.py does 200."""
    found = benchmark("kill").detect(tmp_path, kills=3, seed=1)
    assert found.wrong == []
    assert found.events > 0


def test_a_link_and_a_device_stay_what_they_are(tmp_path):
    from fourrates import files

    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    files.write(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    files.write(os.devnull, b"new")
    assert not os.path.isfile(os.devnull)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]
