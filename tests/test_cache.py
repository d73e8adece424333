"""Tables on disk: written atomically, verified when read, rebuilt when damaged, no error where none can be."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from fourrates import cache, null
from fourrates.state import unpack

QUESTION = (0.7, (0.01, 1e-4))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FOURRATES_CACHE", str(tmp_path / "tables"))
    null._table.cache_clear()
    yield tmp_path / "tables"
    null._table.cache_clear()


def same(first, second):
    return np.array_equal(first.near, second.near) and np.array_equal(first.far, second.far)


def rebuilt(monkeypatch):
    """How often a table is built from now on, as a list that grows."""
    calls, build = [], null._build
    monkeypatch.setattr(null, "_build", lambda *a, **k: calls.append(a) or build(*a, **k))
    return calls


@pytest.mark.parametrize("decay", [1e-9, 0.1, 0.7])  # at 0.25 and below R comes close to 0, and its bounds below it
def test_a_second_process_reads_what_the_first_wrote(folder, monkeypatch, decay):
    levels = (0.01, 1e-4)
    first = null.table(decay, levels)
    assert [path.suffix for path in folder.iterdir()] == [".table"]
    null._table.cache_clear()
    calls = rebuilt(monkeypatch)
    assert same(null.table(decay, levels), first)
    assert calls == []


@pytest.mark.slow
def test_any_number_of_levels_is_kept(folder, monkeypatch):
    levels = [0.4 / i for i in range(1, 16)]  # a key of 350 characters; names of files have 255 at most
    first = null.table(0.3, levels)
    null._table.cache_clear()
    calls = rebuilt(monkeypatch)
    assert same(null.table(0.3, levels), first)
    assert calls == []


@pytest.mark.slow
def test_other_levels_get_a_table_of_their_own(folder):
    null.table(0.7, (0.01, 1e-4))
    null.table(0.7, (0.01, 1e-5))
    assert len(list(folder.iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flipped bit", "cut short", "empty", "foreign", "binary", "longer"])
def test_a_damaged_file_is_rebuilt_and_replaced(folder, damage, monkeypatch):
    first = null.table(*QUESTION)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(
        {
            "flipped bit": whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:],
            "cut short": whole[:-400],
            "empty": b"",
            "foreign": whole.replace(b"exact", b"other"),
            "binary": os.urandom(4096),
            "longer": whole + b"1234",
        }[damage]
    )
    null._table.cache_clear()
    calls = rebuilt(monkeypatch)
    assert same(null.table(*QUESTION), first)
    assert len(calls) == 1
    assert path.read_bytes() == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "forgery", ["nan", "infinite", "rising", "rising with the level", "out of range", "shape", "far"]
)
def test_a_forged_file_with_a_right_checksum_is_rebuilt(folder, forgery, monkeypatch):
    """On the old code the checksum was believed, and the numbers reached the kernel."""
    first = null.table(*QUESTION)
    (path,) = folder.iterdir()
    key = unpack(path.read_bytes()).about["key"]
    near, far, few = (array.copy() for array in (first.near, first.far, first.few))
    if forgery in ("nan", "infinite", "out of range"):
        near[0, 10] = {"nan": np.nan, "infinite": np.inf, "out of range": -0.5}[forgery]
    elif forgery == "rising":
        near[0, 60:70] = np.sort(near[0, 60:70] * 0.9)
    elif forgery == "rising with the level":
        near = near[::-1]
    elif forgery == "shape":
        near = near[:, :-100]
    else:
        far[0, 0, 100] = 1.0
    cache.write(key, (near, far, few))
    null._table.cache_clear()
    calls = rebuilt(monkeypatch)
    assert same(null.table(*QUESTION), first)
    assert len(calls) == 1


@pytest.mark.slow
def test_the_scratch_file_has_a_name_nobody_can_foresee(folder, monkeypatch):
    """On the old code another user could put a link where the scratch file would be."""
    names = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda source, target: names.append(source) or replace(source, target))
    null.table(*QUESTION)
    (path,) = folder.iterdir()
    path.unlink()
    null._table.cache_clear()
    null.table(*QUESTION)
    assert len(set(names)) == 2
    assert not any(str(os.getpid()) in os.path.basename(name) for name in names)


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("FOURRATES_CACHE", str(blocked / "tables"))
    null._table.cache_clear()
    assert null.table(*QUESTION).window >= 16


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_an_unwritable_folder_is_no_error(folder):
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert null.table(*QUESTION).window >= 16
    folder.chmod(stat.S_IRWXU)


def test_a_failed_write_leaves_no_scratch_file(folder, monkeypatch):
    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    null.table(*QUESTION)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "fourrates"),
        ("win32", "LOCALAPPDATA", "fourrates"),
        ("darwin", None, "Caches"),
    ],
)
def test_the_cache_lies_in_the_users_cache_folder(platform, variable, expected, monkeypatch, tmp_path):
    monkeypatch.delenv("FOURRATES_CACHE")
    monkeypatch.setattr("sys.platform", platform)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
        assert cache.folder() == str(tmp_path / expected)
    else:
        assert Path(cache.folder()).parent.name == expected
