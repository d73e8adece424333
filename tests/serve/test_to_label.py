"""Which predictions to label: a queue by a plan, which kills, retries and late labels leave whole."""

import os
import random
import threading
import time
from contextlib import suppress

import pytest

pytest.importorskip("starlette")
from servers import Client, Server

import fourrates as fr

REFERENCE = [[8_820, 180], [300, 700]]
CONFIG = {"sampled": True, "reference": REFERENCE, "label_plan": {"share": 0.05}, "max_wait": "1 day"}
PATH = "/api/monitors/m"
NOON = 1_790_000_000


def predictions(start, stop, **more):
    ids = [f"p{number}" for number in range(start, stop)]
    return {"id": ids, "y_pred": [int(number % 10 == 0) for number in range(start, stop)], **more}


def ask(served, **query):
    answer = served.http.get(f"{PATH}/to-label", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def served(start):
    served = start()
    assert served.http.put(PATH, json=CONFIG).status_code == 201
    return served


def send(served, kind, body):
    answer = served.http.post(f"{PATH}/{kind}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_plan_draws_by_prediction_and_a_retry_draws_nothing_more(served):
    body = predictions(0, 10_000)
    send(served, "predictions", body)
    first = ask(served, limit=1_000)
    assert len(first["to_label"]) == first["drawn"] == first["waiting"]
    chances = fr.LabelPlan(REFERENCE, share=0.05).probabilities
    for pred, size in ((0, 9_000), (1, 1_000)):
        expected = size * chances[pred]
        drawn = sum(one["pred"] == pred for one in first["to_label"])
        assert abs(drawn - expected) < 5 * expected**0.5  # five standard deviations of a binomial
    send(served, "predictions", body)
    assert ask(served, limit=1_000) == first


def test_a_label_takes_its_prediction_out_of_the_queue_and_others_are_not_evidence(served):
    send(served, "predictions", predictions(0, 5_000))
    asked = [one["id"] for one in ask(served, limit=1_000)["to_label"]]
    others = sorted({f"p{number}" for number in range(5_000)} - {*asked})[:500]
    send(served, "labels", {"id": others, "y_true": [1] * 500})  # volunteered: nobody asked for them
    assert served.http.get(PATH).json()["events"] == 0
    send(served, "labels", {"id": asked[:50], "y_true": [0] * 50})
    after = ask(served, limit=1_000)
    assert [one["id"] for one in after["to_label"]] == asked[50:]
    assert (after["drawn"], after["labelled"], after["waiting"]) == (len(asked), 50, len(asked) - 50)
    assert served.http.get(PATH).json()["events"] == 50
    assert f'fourrates_to_label{{monitor="m"}} {len(asked) - 50}.0' in served.http.get("/metrics").text


def test_a_label_that_was_here_first_is_not_asked_for(served):
    send(served, "labels", {"id": [f"p{number}" for number in range(1_000)], "y_true": [0] * 1_000})
    send(served, "predictions", predictions(0, 1_000))
    assert ask(served)["drawn"] == 0
    assert 0 < served.http.get(PATH).json()["events"] < 100


def test_what_does_not_wait_any_more_is_not_asked_for(served):
    send(served, "predictions", predictions(0, 1_000, time=[NOON] * 1_000))
    assert ask(served)["waiting"] > 0
    send(served, "predictions", predictions(1_000, 2_000, time=[NOON + 2 * 86_400] * 1_000))
    left = ask(served, limit=1_000)["to_label"]
    assert left
    assert {int(one["id"][1:]) >= 1_000 for one in left} == {True}


def test_the_queue_has_segments_and_the_client_reads_it(start):
    served = start()
    served.http.put(PATH, json=CONFIG | {"by": ["country"]})
    countries = ["FR", "DE"] * 2_500
    send(served, "predictions", predictions(0, 5_000, by={"country": countries}))
    with fr.Client(served.url) as client:
        answer, after, got = client.to_label("m", limit=7), 0, []
        while answer["to_label"]:
            got += answer["to_label"]
            after = answer["next"]
            answer = client.to_label("m", after, limit=7)
        with pytest.raises(ConnectionError, match="no monitor"):
            client.to_label("other")
    assert len(got) == len({one["id"] for one in got}) == answer["drawn"]
    assert all(one["segment"] == {"country": countries[int(one["id"][1:])]} for one in got)


@pytest.mark.parametrize("change", [{"reference": None}, {"sampled": False}, {"label_plan": {"share": 2}}])
def test_a_plan_that_cannot_draw_is_an_error(start, change):
    answer = start().http.put(PATH, json=CONFIG | change)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "bad_config"


def test_a_monitor_without_a_plan_says_so(start):
    served = start()
    served.http.put(PATH, json={})
    assert served.http.get(f"{PATH}/to-label").json()["error"]["code"] == "no_label_plan"


class Story:
    """A server that is killed at random moments, or after a commit and before its answers; a sender and a labeller."""

    def __init__(self, folder, batches, seed):
        self.dice, self.batches, self.sent = random.Random(seed), batches, threading.Event()
        self.server = Server(folder, snapshot_bytes=20_000)
        self.asked, self.problems = [], []

    def call(self, method, path, body=None, key=None):
        """An answer, however often it takes."""
        headers = {} if key is None else {"Idempotency_Key": key}
        while True:
            try:
                with Client(self.server.port, 20) as client:
                    status, content = client.call(method, PATH + path, body, **headers)
                if status == 200:
                    return content
                assert status == 503, (status, content)
            except OSError:
                pass
            except Exception as error:  # an answer that was cut off
                if type(error).__module__ != "http.client":
                    raise
            time.sleep(0.02)

    def send(self):
        for number in range(self.batches):
            body = predictions(100 * number, 100 * (number + 1))
            for _ in range(1 + (self.dice.random() < 0.3)):  # some again: an id counts once
                self.call("POST", "/predictions", body)
        self.sent.set()

    def label(self):
        after = 0
        while True:
            ended = self.sent.is_set()
            answer = self.call("GET", f"/to-label?after={after}&limit=20")
            ids = [one["id"] for one in answer["to_label"]]
            if ids:
                self.asked += ids
                self.call("POST", "/labels", {"id": ids, "y_true": [0] * len(ids)})
                after = answer["next"]
            elif ended:
                return

    def guarded(self, job):
        try:
            job()
        except BaseException as error:
            self.problems.append(error)

    def run(self):
        """The number of kills, and the last answer."""
        self.server.start()
        with Client(self.server.port) as client:
            assert client.call("PUT", PATH, CONFIG)[0] == 201
        threads = [threading.Thread(target=self.guarded, args=(job,)) for job in (self.send, self.label)]
        for thread in threads:
            thread.start()
        kills = 0
        try:
            while any(thread.is_alive() for thread in threads) and not self.problems:
                time.sleep(self.dice.uniform(0, 0.4))
                self.server.kill()
                kills += 1
                fails = {"FOURRATES_FAILPOINT": f"committed:{self.dice.randint(1, 20)}"} if kills % 2 else {}
                with suppress(RuntimeError):  # it may die before it is ready
                    self.server.start(**fails)
            assert not self.problems, self.problems
            return kills, self.call("GET", "/to-label")
        finally:
            self.server.kill()


@pytest.mark.slow
def test_whenever_the_server_is_killed_no_id_is_asked_for_twice_and_none_is_lost(tmp_path):
    story = Story(tmp_path / "data", int(os.environ.get("FOURRATES_KILLED_BATCHES", "150")), seed=3)
    kills, last = story.run()
    assert kills >= 3
    assert len(story.asked) == len({*story.asked}), "an id was asked for twice"
    assert (last["waiting"], last["labelled"], last["drawn"]) == (0, len(story.asked), len(story.asked))
    print(f"{kills} kills, {100 * story.batches:,} predictions, {last['drawn']:,} drawn, asked for and labelled once")
