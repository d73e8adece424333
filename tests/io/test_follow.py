"""A file that grows and is rotated: every line once, whatever is done to it, whenever the reader starts again."""

import json
import os
import random
import shutil
import time
from contextlib import contextmanager

import msgspec
import pytest

from fourrates.io import Follower, Position


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.csv"


def follow(path, position=None, **options):
    return Follower(str(path), position, **{"linger": 0.0} | options)


def again(position):
    """A position that was saved and loaded."""
    return msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(position))), Position)


def drain(follower, seconds=0.0):
    """All lines there are; waited for, if asked."""
    lines, end = [], time.monotonic() + seconds
    while (piece := follower.read()) is not None or time.monotonic() < end:
        if piece is not None:
            assert piece.lines.endswith(b"\n")
            lines += piece.lines[:-1].split(b"\n")
    return lines


def write(path, *lines, end="\n"):
    with open(path, "a") as file:
        file.write("\n".join(map(str, lines)) + end)


def numbered(first, last):
    return [b"%d" % number for number in range(first, last)]


def test_half_a_line_waits_for_its_other_half(log):
    write(log, "a", "b", end="")
    with follow(log) as follower:
        assert drain(follower) == [b"a"]
        assert follower.position.half == b"b"
        write(log, "c")
        assert drain(follower) == [b"bc"]


def test_what_is_written_just_before_a_rename_is_read(log):
    """On the old code 660 of 1,419 lines over 40 renames were lost."""
    got = []
    with follow(log) as follower:
        for turn in range(40):
            write(log, *range(30 * turn, 30 * turn + 10))
            got += drain(follower)
            write(log, *range(30 * turn + 10, 30 * turn + 30))
            os.rename(log, f"{log}.{turn + 1}")
        write(log, "end")
        assert got + drain(follower) == [*numbered(0, 1200), b"end"]


@pytest.mark.slow
def test_what_is_written_to_the_old_file_after_the_rename_is_read_before_the_new_one(log):
    with follow(log, linger=0.3) as follower:
        with log.open("a") as old:
            print("a", file=old, flush=True)
            assert drain(follower) == [b"a"]
            os.rename(log, f"{log}.1")
            write(log, "c")
            assert drain(follower) == []
            print("b", file=old, flush=True)
            assert drain(follower, 0.1) == [b"b"]
        assert drain(follower, 0.5) == [b"c"]


def test_several_rotations_between_two_looks_lose_nothing(log):
    write(log, *range(10))
    with follow(log) as follower:
        assert len(drain(follower)) == 10
        for turn in range(1, 6):
            write(log, *range(10 * turn, 10 * turn + 10))
            for number in range(5, 0, -1):  # as logrotate does: .1 is the youngest
                if os.path.exists(f"{log}.{number}"):
                    os.rename(f"{log}.{number}", f"{log}.{number + 1}")
            os.rename(log, f"{log}.1")
            time.sleep(0.01)  # a clock tick of the file system
        write(log, "end")
        assert drain(follower) == [*numbered(10, 60), b"end"]


def copytruncate(log, number):
    shutil.copy(log, f"{log}.{number}")
    os.truncate(log, 0)


def test_a_copy_that_is_emptied_loses_nothing_that_is_in_the_copy(log):
    with follow(log) as follower:
        write(log, *range(10))
        assert len(drain(follower)) == 10
        write(log, *range(10, 20))
        copytruncate(log, 1)
        write(log, *range(20, 23))
        assert drain(follower) == numbered(10, 23)


def test_a_file_that_grew_past_the_old_size_after_it_was_emptied_is_noticed(log):
    with follow(log) as follower:
        write(log, *range(10))
        assert len(drain(follower)) == 10
        copytruncate(log, 1)
        write(log, *range(1000, 1100))
        assert drain(follower) == numbered(1000, 1100)


@pytest.mark.parametrize("restart", [False, True])
def test_a_line_cut_in_two_by_a_truncation_is_whole(log, restart):
    with follow(log) as follower:
        write(log, "header", "1,")
        follower.read()
        write(log, "12", end="")
        drain(follower)
        copytruncate(log, 1)
        write(log, "34", end="")
        assert drain(follower) == []
        position = follower.position
        if restart:
            follower = follow(log, again(position))
        write(log, "56")
        assert drain(follower) == [b"123456"]
        follower.close()


@pytest.mark.parametrize("restart", [False, True])
def test_a_file_that_is_copied_and_emptied_before_a_line_of_it_was_read_is_read_from_the_copy(log, restart):
    write(log, "a", "b")
    follower = follow(log)
    assert follower.open()
    if restart:
        position = again(follower.position)
        follower.close()
    copytruncate(log, 1)
    write(log, "c")
    if restart:
        follower = follow(log, position)
    assert drain(follower) == [b"a", b"b", b"c"]
    follower.close()


@pytest.mark.parametrize("restart", [False, True])
def test_a_file_emptied_and_then_renamed_between_two_looks_loses_nothing(log, restart):
    write(log, "a", "b")
    follower = follow(log)
    assert drain(follower) == [b"a", b"b"]
    position = again(follower.position)
    time.sleep(0.01)
    write(log, "c")
    copytruncate(log, 1)
    time.sleep(0.01)
    write(log, "d")
    os.rename(log, f"{log}.2")
    write(log, "e")
    if restart:
        follower.close()
        follower = follow(log, position)
    assert drain(follower) == [b"c", b"d", b"e"]
    follower.close()


def test_a_truncation_without_a_copy_is_told(log):
    told = []
    with follow(log, on_message=told.append) as follower:
        write(log, "a", "b")
        drain(follower)
        os.truncate(log, 0)
        write(log, "c")
        assert drain(follower) == [b"c"]
    assert "no copy" in told[0]


def test_a_hole_left_by_a_writer_that_goes_on_at_its_old_place_is_skipped(log):
    with open(log, "w") as writer, follow(log) as follower:
        print("a" * 100, file=writer, flush=True)
        drain(follower)
        copytruncate(log, 1)
        print("b", file=writer, flush=True)
        assert drain(follower) == [b"b"]


def test_a_hole_is_skipped_when_a_restart_comes_in_the_middle_of_it(log, monkeypatch):
    monkeypatch.setattr("fourrates.io.follow.READ", 1000)
    write(log, "a")
    follower = follow(log)
    drain(follower)
    copytruncate(log, 1)
    os.truncate(log, 5000)
    write(log, "b")
    lines = []
    for _ in range(20):
        if (piece := follower.read()) is not None:
            lines.append(piece.lines)
        position = again(follower.position)
        follower.close()
        follower = follow(log, position)
    follower.close()
    assert lines == [b"b\n"]


@pytest.mark.parametrize("restart", [False, True])
def test_an_old_file_that_was_left_is_not_read_again_when_something_is_added_to_it(log, restart):
    write(f"{log}.2", "older")
    write(log, "a")
    follower = follow(log)
    assert drain(follower) == [b"a"]
    os.rename(log, f"{log}.1")
    log.touch()
    assert drain(follower) == []
    time.sleep(0.01)  # a clock tick of the file system
    write(f"{log}.1", "too late")
    write(f"{log}.2", "older")
    if restart:
        position = again(follower.position)
        follower.close()
        follower = follow(log, position)
    write(log, "b")
    assert drain(follower) == [b"b"]
    follower.close()


def test_a_file_that_cannot_be_read_for_a_while_is_read_from_where_it_was(log, monkeypatch):
    write(log, "a")
    with follow(log) as follower:
        assert drain(follower) == [b"a"]
        position = follower.position
    write(log, "b")
    opened = os.open

    def refuse(path, *arguments, **options):
        if os.fspath(path) == str(log):
            raise PermissionError
        return opened(path, *arguments, **options)

    with monkeypatch.context() as refusing, follow(log, position) as follower:
        refusing.setattr(os, "open", refuse)
        assert drain(follower) == []
        assert follower.position == position
        refusing.undo()
        assert drain(follower) == [b"b"]


def test_the_last_line_of_an_old_file_needs_no_end(log):
    with follow(log) as follower:
        write(log, "a", "b", end="")
        drain(follower)
        os.rename(log, f"{log}.1")
        write(log, "c")
        pieces = [follower.read(), follower.read()]
        assert [(piece.lines, piece.begins) for piece in pieces] == [(b"b\n", False), (b"c\n", True)]


def test_files_of_other_names_are_not_taken_for_rotated_ones(log):
    write(log, "a")
    with follow(log) as follower:
        drain(follower)
        for name in ("log.csv.state", "log.csv.alerts", "log.csv.1.gz", "log.csv.bak", "other.csv.1", "log2.csv"):
            write(log.parent / name, "x")
        os.rename(log, f"{log}.1")
        write(log, "b")
        assert drain(follower) == [b"b"]


@pytest.mark.parametrize(
    "change", ["nothing", "grown", "renamed", "twice", "copied", "replaced", "gone", "inode reused"]
)
def test_a_reader_that_starts_again_goes_on_where_it_was(log, change):
    write(log, "header", *range(5))
    with follow(log) as follower:
        assert len(drain(follower)) == 6
        position = again(follower.position)
    wanted = numbered(5, 8)
    told = []
    if change == "nothing":
        wanted = []
    else:
        write(log, 5, 6, 7)
    if change in ("renamed", "twice"):
        os.rename(log, f"{log}.1")
        write(log, 8)
        wanted += [b"8"]
    if change == "twice":
        time.sleep(0.01)
        os.rename(f"{log}.1", f"{log}.2")
        os.rename(log, f"{log}.1")
        write(log, 9)
        wanted += [b"9"]
    if change == "copied":
        copytruncate(log, 1)
        write(log, 8)
        wanted += [b"8"]
    if change == "replaced":
        os.unlink(log)
        write(log.parent / "x", 8)  # so that the number of the file is not used again
        write(log, 9)
        wanted = [b"9"]
    if change == "gone":
        os.unlink(log)
        wanted = []
    if change == "inode reused":
        os.truncate(log, 0)
        write(log, *range(100, 200))
        wanted = numbered(100, 200)
    with follow(log, position, on_message=told.append) as follower:
        assert drain(follower) == wanted
        if change == "gone":
            write(log, "back")
            assert drain(follower) == [b"back"]
    assert bool(told) == (change not in ("nothing", "grown"))


class Rotated:
    """A log that a program writes to, and the ways in which logs are rotated, one or several in turn."""

    def __init__(self, folder, kind):
        self.kinds, self.turns = kind.split(", "), 0
        self.log = self.file = folder / "log.csv"  # as it is followed, and as it is written
        if "link" in kind or "switched" in kind:
            (folder / "pods").mkdir()
            self.file = folder / "pods" / "0.log"
            self.log.symlink_to(self.file)
        self.file.touch()

    def rotate(self):
        self.turns += 1
        kind = random.Random(self.turns).choice(self.kinds)
        time.sleep(0.005)  # a clock tick of the file system
        if kind == "copytruncate":
            copytruncate(self.file, self.turns)
            write(self.file, f"# {self.turns}")  # else it looks as it did before
        elif kind == "switched":
            self.file = self.file.with_name(f"{self.turns}.log")
            self.file.touch()
            (self.log.parent / "next").symlink_to(self.file)
            os.replace(self.log.parent / "next", self.log)
        else:
            os.rename(self.file, f"{self.file}.20260131-{100_000 + self.turns}")
            self.file.touch()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    "kind", ["rename", "copytruncate", "rename, copytruncate", "link", "switched", "link, copytruncate, switched"]
)
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_writes_rotations_reads_and_restarts_gives_every_line_once(tmp_path, seed, kind, restarts):
    """Lines of random length, written in random pieces, so that half lines are met everywhere.

    When a link is switched the file it led to may have been rotated too, as in Kubernetes.
    """
    draw, rotated = random.Random(seed), Rotated(tmp_path, kind)
    written, got, rest = [], [], b""
    follower = follow(rotated.log)
    assert follower.read() is None
    for _ in range(300):
        step = draw.random()
        if step < 0.5:
            for _ in range(draw.randrange(1, 20)):
                line = b"%d:%s" % (len(written), b"x" * draw.randrange(30))
                written.append(line)
                rest += line + b"\n"
            cut = draw.randrange(len(rest) + 1)
            with rotated.file.open("ab") as file:
                file.write(rest[:cut])
            rest = rest[cut:]
        elif step < 0.7:
            if (piece := follower.read()) is not None:
                got += piece.lines[:-1].split(b"\n")
        elif step < 0.85 and restarts:
            position = again(follower.position)
            follower.close()
            follower = follow(rotated.log, position)
        elif step >= 0.85:
            with rotated.file.open("ab") as file:  # a writer ends its line before it lets its file be rotated
                file.write(rest)
            rest = b""
            rotated.rotate()
    with rotated.file.open("ab") as file:
        file.write(rest)
    got += drain(follower)
    follower.close()
    assert [line for line in got if not line.startswith(b"#")] == written
    assert rotated.turns > 20


@pytest.mark.parametrize(
    "change",
    [
        {"offset": -1},
        {"offset": "1"},
        {"head": "AAAA" * 400},
        {"head": "zz"},
        {"path": "a\0b"},
        {"switched": [["a", "b"]]},
        {"last": "AAAA" * 22},
        {"passed": [1] * 9},
        {"passed": 3},
        {"copied": 1},
        {"inode": True},
        {"half": None},
    ],
)
def test_a_position_that_makes_no_sense_is_refused(log, change):
    write(log, "a")
    with follow(log) as follower:
        drain(follower)
        saved = msgspec.to_builtins(follower.position)
    with pytest.raises(ValueError, match=r"position|Expected|Invalid"):
        msgspec.convert({**saved, **change}, Position)
    with pytest.raises(ValueError, match="missing required field"):
        msgspec.convert({name: saved[name] for name in saved if name not in change}, Position)


@pytest.mark.parametrize("kind", ["folder", "loop", "pipe"])
def test_a_name_that_is_no_file_for_a_while_is_told_once_and_waited_out(log, kind):
    told = []
    write(log, 0, 1)
    with follow(log, on_message=told.append) as follower:
        assert drain(follower) == numbered(0, 2)
        os.rename(log, f"{log}.1")
        write(f"{log}.1", 2)
        if kind == "folder":
            log.mkdir()
        elif kind == "loop":
            log.symlink_to(log)
        else:
            os.mkfifo(log)
        assert drain(follower, 0.1) == numbered(2, 3)
        assert len(told) == 1
        assert "log.csv: " in told[0]
        position = follower.position
    with follow(log, position, on_message=told.append) as follower:  # and so it is after a restart
        assert drain(follower, 0.1) == []
        assert len(told) == 2
        (log.rmdir if kind == "folder" else log.unlink)()
        write(log, 3, 4)
        assert drain(follower) == numbered(3, 5)


def test_a_link_that_leads_to_the_next_file_is_followed_after_the_last_one_is_read(tmp_path, log):
    (tmp_path / "elsewhere").mkdir()
    first, second = (tmp_path / "elsewhere" / name for name in ("monday", "tuesday"))
    write(first, 0)
    log.symlink_to(first)
    with follow(log) as follower:
        assert drain(follower) == numbered(0, 1)
        write(first, 1)
        write(second, 2)
        log.unlink()
        log.symlink_to(second)
        assert drain(follower, 0.1) == numbered(1, 3)
        assert follower.switches == 1
        position = follower.position
    write(second, 3)
    with follow(log, position) as follower:
        assert drain(follower) == numbered(3, 4)


def test_a_file_that_a_link_led_to_for_a_moment_is_read_in_its_turn_also_after_a_restart(tmp_path, log):
    files = [tmp_path / name for name in ("monday", "tuesday", "wednesday")]
    write(files[0], 0)
    log.symlink_to(files[0])
    with follow(log, linger=60) as follower:
        assert drain(follower) == numbered(0, 1)
        for number in (1, 2):
            write(files[number], number)
            log.unlink()
            log.symlink_to(files[number])
            assert drain(follower) == []  # the writer may still have the first one open
        position = again(follower.position)
    with follow(log, position) as follower:
        assert drain(follower) == numbered(1, 3)


@pytest.mark.parametrize("restart", [False, True])
def test_files_that_a_link_led_to_unseen_are_read_by_the_dates_in_their_names(tmp_path, log, restart):
    """On the old code one was lost whenever a link was switched twice between two looks."""
    days = [tmp_path / f"log-2026-0{day}.csv" for day in ("1-29", "1-30", "1-31", "2-01", "2-02", "2-03")]
    others = [tmp_path / name for name in ("log-2026-01-31.csv.gz", "other-2026-01-31.csv", "log-2026-01.csv")]
    write(days[0], "read long ago")
    time.sleep(0.01)  # a clock tick of the file system
    write(days[1], 1)
    log.symlink_to(days[1])
    follower = follow(log)
    assert drain(follower) == numbered(1, 2)
    if restart:
        position = again(follower.position)
        follower.close()
    for file in others:
        write(file, "of another log")
    for number in (5, 3, 2, 4):  # in the order of their names, whenever they were written
        write(days[number], number)
    write(days[1], 1)
    log.unlink()
    log.symlink_to(days[4])
    if restart:
        follower = follow(log, position)
    assert drain(follower, 0.1) == numbered(1, 5)
    follower.close()


def test_a_file_that_was_read_is_not_read_again_when_a_link_is_switched_back_and_on(tmp_path, log):
    files = [tmp_path / f"{number}.csv" for number in range(4)]
    got = []
    write(files[1], 1)
    log.symlink_to(files[1])
    with follow(log) as follower:
        for number in (2, 1, 0, 3):
            got += drain(follower)
            time.sleep(0.01)  # a clock tick of the file system
            write(files[number], f"{number} again")
            log.unlink()
            log.symlink_to(files[number])
        got += drain(follower, 0.1)
    assert [line for line in got if line.startswith(b"2")] == [b"2 again"]


def test_a_rename_while_the_file_of_a_position_is_looked_for(log, monkeypatch):
    """The folder is listed before the rename, and what it lists is looked at after it."""
    write(log, 1)
    with follow(log) as follower:
        assert drain(follower) == numbered(1, 2)
        position = follower.position
    write(log, 2)
    scandir = os.scandir

    @contextmanager
    def rotate_after_listing(folder):
        with scandir(folder) as entries:
            listed = list(entries)
        monkeypatch.undo()
        os.rename(log, f"{log}.1")
        write(log, 3)
        yield listed

    monkeypatch.setattr(os, "scandir", rotate_after_listing)
    with follow(log, position) as follower:
        assert drain(follower) == numbered(2, 4)


def test_a_rename_between_finding_the_file_of_a_position_and_opening_it(log, monkeypatch):
    """On the old code some 5 % of the lines were lost by a reader that started again 1,800 times during 300 renames."""
    write(log, 1)
    with follow(log) as follower:
        assert drain(follower) == numbered(1, 2)
        position = follower.position
    write(log, 2)
    opened = os.open

    def rotate_before(path, *arguments, **options):
        monkeypatch.undo()
        os.rename(log, f"{log}.1")
        write(log, 3)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", rotate_before)
    with follow(log, position) as follower:
        assert drain(follower) == numbered(2, 4)


def test_a_rename_between_finding_the_file_a_link_was_switched_to_and_opening_it(tmp_path, log, monkeypatch):
    files = [tmp_path / name for name in ("monday", "tuesday")]
    for number, file in enumerate(files):
        write(file, number)
    log.symlink_to(files[0])
    opened = os.open

    def rotate_before(path, *arguments, **options):
        if os.fspath(path) == str(files[1]):
            monkeypatch.undo()
            os.rename(files[1], f"{files[1]}.1")
            write(files[1], 2)
        return opened(path, *arguments, **options)

    with follow(log) as follower:
        assert drain(follower) == numbered(0, 1)
        log.unlink()
        log.symlink_to(files[1])
        monkeypatch.setattr(os, "open", rotate_before)
        assert drain(follower) == numbered(1, 3)


def test_a_file_that_is_away_for_a_while_is_read_from_where_it_was(log):
    told = []
    write(log, 0)
    with follow(log) as follower:
        assert drain(follower) == numbered(0, 1)
        position = again(follower.position)
    os.rename(log, log.parent / "away")
    with follow(log, position, on_message=told.append) as follower:
        assert drain(follower) == []
        write(log.parent / "away", 1)
        os.rename(log.parent / "away", log)
        assert drain(follower) == numbered(1, 2)
    assert told == []
