"""Files written whole or not at all, with nothing left lying about."""

import os
import time

import pytest

from fourrates import files


def test_a_file_is_the_old_or_the_new_and_nothing_is_left_after_a_failure(tmp_path, monkeypatch):
    path = tmp_path / "state"
    files.write(path, b"old")

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        files.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_what_a_killed_process_left_is_removed_when_it_is_old_enough(tmp_path):
    """On the old code it stayed for good."""
    old, young, other = tmp_path / ".state.abc.part", tmp_path / ".state.def.part", tmp_path / ".state2.abc.part"
    for path in (old, young, other):
        path.write_bytes(b"half")
    for path in (old, other):
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    files.write(tmp_path / "state", b"whole")
    assert sorted(os.listdir(tmp_path)) == [".state.def.part", ".state2.abc.part", "state"]
