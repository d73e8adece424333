"""The guide of the service is true: its commands run as they stand, and so does the demonstration."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from examples.serve_demo import BROKEN, Demo, Service

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "serve.md").read_text()
ADDRESS = "http://127.0.0.1:8421"
BLOCKS = [block for block in re.findall(r"^```bash\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL) if ADDRESS in block]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries that Apprise loads for an address
@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="no curl or no bash")
def test_every_curl_of_the_guide_is_answered(start, tmp_path):
    served = start()
    (tmp_path / ".curlrc").write_text("silent\nshow-error\nfail-with-body\nmax-time = 20\n")
    environment = os.environ | {"CURL_HOME": str(tmp_path)}
    answers = []
    for block in BLOCKS:
        if "$ID" in block:
            wrong = {"y_true": [1] * 500, "y_pred": [0] * 500, "by": {"country": ["FR"] * 500}}
            served.http.post("/api/monitors/fraud/events", json=wrong).raise_for_status()
            found = served.http.get("/api/monitors/fraud/drifts").json()["drifts"]
            environment["ID"] = next(one["id"] for one in found if one["kind"] == "drift")
        command = "set -eu -o pipefail\n" + block.replace(ADDRESS, served.url)
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        answers.append(done.stdout)
    assert len(BLOCKS) > 8
    detail = served.http.get("/api/monitors/fraud").json()
    assert detail["counts"]["pairs"] == 3 + 2 + 2  # those with ids: events, late labels and NDJSON
    assert detail["events"] == 3 + 2 + 2 + 2 + 500  # and those without
    assert json.loads(answers[1]) == {"accepted": 3, "repeated": 0, "rejected": 0, "findings": []}


def test_the_settings_of_the_guide_are_those_there_are():
    from fourrates.serve.config import MonitorConfig

    table = GUIDE.split("| setting |")[1].split("\n\n")[0]
    told = set(
        re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line.count("|") > 2))
    )
    assert told == set(MonitorConfig.__struct_fields__)


@pytest.mark.slow
def test_the_demonstration_drifts_and_recovers_as_it_says(start):
    """A period of it: the broken country is found, then the whole; within a minute, and not before anything broke."""
    served = start()
    demo = Demo(Service(served.url), seed=1)
    demo.create()
    found = {}
    while demo.transactions.steps < 4 * 120:
        for one in demo.step():
            found[one] = demo.transactions.steps / 4
    listed = served.http.get("/api/monitors/card fraud/drifts").json()["drifts"]
    assert {one["id"] for one in listed} == found.keys()
    drifts = [one for one in listed if one["kind"] == "drift"]
    assert 15 < min(found.values()) < 60
    assert {"country": BROKEN} in [one["segment"] for one in drifts]
    assert None in [one["segment"] for one in drifts]
    recoveries = [one for one in listed if one["kind"] == "recovery"]
    closed = [one["segment"] for one in recoveries if one["closes"]]
    assert len(closed) == 2
    assert None in closed
    assert {"country": BROKEN} in closed
    assert all(found[one["id"]] > 60 for one in recoveries)
    summaries = {one["name"]: one for one in served.http.get("/api/monitors").json()["monitors"]}
    assert (summaries["card fraud"]["drift"], summaries["card fraud"]["drifted_segments"]) == (None, 0)
    assert summaries["card fraud"]["waiting"] > 0
    assert summaries["spam filter"]["drifts"] == summaries["churn"]["drifts"] == 0
