"""``fourrates design`` and ``fourrates datasets``."""

import json
import os

import pytest

import fourrates as fr


def test_design_says_the_level_the_library_finds(fourrates):
    ran = fourrates("design", "100000", "--decay", "0.9", "--json")
    assert ran.status == 0
    assert json.loads(ran.out)["detect"] == fr.design(100_000, 0.9).detect
    assert "one false alarm in 100,000 events" in fourrates("design", "100000").out


def test_a_budget_that_cannot_be_kept_is_said(fourrates):
    ran = fourrates("design", "50")
    assert ran.status == 2
    assert ran.err == "fourrates: arl 50.0 is not a number of events, at least 100\n"


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
