"""``fourrates compare``."""

import json

import numpy as np


def test_the_command_says_the_verdict_and_fails_on_request(fourrates, tmp_path):
    random = np.random.default_rng(1)
    truth, new = random.random(12_000) < 0.3, random.random(12_000) < 0.5
    right = random.random(12_000) < np.where(truth, np.where(new, 0.78, 0.62), 0.95)
    path = tmp_path / "canary.csv"
    rows = zip(truth * 1, np.where(right, truth, ~truth) * 1, np.where(new, "v2", "v1"), strict=True)
    path.write_text("y,p,version\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    words = ["compare", path, "--truth", "y", "--pred", "p", "--by", "version"]
    better = fourrates(*words, "--models", "v1,v2", "--margin", 5)
    assert better.out.startswith("v2 is better than v1\n  tnr ")
    worse = fourrates(*words, "--models", "v2,v1", "--fail-on", "worse", "--json")
    assert (worse.status, json.loads(worse.out)["verdict"]) == (1, "worse")
    assert "two columns" in fourrates("compare", path, "--pred", "p").err
