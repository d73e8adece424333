"""``fourrates datasets``."""

import json
import os

import pytest


def test_an_unknown_data_set_is_said(fourrates):
    ran = fourrates("datasets", "iris")
    assert ran.status == 2
    assert "data set 'iris' is not one of" in ran.err


def test_all_data_sets_are_listed(fourrates):
    ran = fourrates("datasets", "--json")
    assert ran.status == 0
    names = [row["name"] for row in json.loads(ran.out)["datasets"]]
    assert names == ["usenet1", "usenet2", "sea", "hyperplane", "elecNorm"]


@pytest.mark.skipif("FOURRATES_DATA" not in os.environ, reason="FOURRATES_DATA names no folder with the data sets")
def test_a_data_set_is_found_and_verified(fourrates):
    ran = fourrates("datasets", "hyperplane", "--json")
    (row,) = json.loads(ran.out)["datasets"]
    assert row["state"] == "verified"
    assert len(row["files"]) == 9
