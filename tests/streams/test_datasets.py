"""The public data sets: read as they are distributed, refused when they are not."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from fourrates.streams import datasets

DATA = os.environ.get("FOURRATES_DATA")
here = pytest.mark.skipif(not DATA, reason="FOURRATES_DATA names no folder with the public data sets")


@here
@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("usenet1", (1500, 99), 2),
        ("usenet2", (1500, 99), 2),
        ("sea", (60_000, 3), 2),
        ("hyperplane", (90_000, 10), 2),
        ("elecNorm", (45_312, 8), 2),
    ],
)
def test_a_data_set_is_read_whole(name, shape, classes):
    examples = datasets.load(name)
    assert examples.features.shape == shape
    assert examples.labels.shape == shape[:1]
    assert set(np.unique(examples.labels)) == set(range(classes))
    assert all(0 < change < shape[0] for change in examples.changes)


@here
def test_the_threshold_of_sea_moves_at_its_changes():
    # In this file the second and third feature decide, above 8, 9, 7 and 9, and one label in ten is turned.
    examples = datasets.load("sea")
    parts = np.split(np.arange(60_000), examples.changes)
    for part, threshold in zip(parts, (8, 9, 7, 9), strict=True):
        told = examples.features[part, 1:].sum(1) > threshold
        assert 0.89 < (told == examples.labels[part]).mean() < 0.91


@here
def test_a_file_that_was_changed_is_refused(tmp_path):
    shutil.copy(Path(DATA) / "usenet1.arff", tmp_path / "usenet1.arff")
    with (tmp_path / "usenet1.arff").open("a") as file:
        file.write("\n")
    with pytest.raises(datasets.DatasetError, match=r"is not the usenet1.arff of usenet1: its SHA-256 is \w{64}, not"):
        datasets.load("usenet1", tmp_path)


def test_a_missing_file_says_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.delenv("FOURRATES_DATA", raising=False)
    monkeypatch.setenv("FOURRATES_CACHE", str(tmp_path / "cache"))
    with pytest.raises(datasets.DatasetError, match=r"put usenet1.arff from http://mlkd.* into .*folder"):
        datasets.load("usenet1", tmp_path / "folder")
    with pytest.raises(datasets.DatasetError, match=r"sea.arff is not there; put sea.arff from https://www.win.tue.nl"):
        datasets.paths("sea", fetch=False)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="data set 'iris' is not one of"):
        datasets.load("iris")
