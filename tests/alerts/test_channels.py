"""Commands and Apprise, and what an alert says."""

import json
import os
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import fourrates as fr
from fourrates.alerts import Apprise, Command, Failure, finding_alert
from fourrates.alerts.text import defused, plain
from fourrates.baselines import DDM, DDMOCI, EDDM, NFR, PerfSim
from fourrates.findings import Finding, Share, Shift

CHANGE = fr.RateChange("tpr", "down", 0.25, 0.4, 0.75, 900)
DRIFT = fr.Drift(at=5080, since=5062, changes=(CHANGE,), confusion=((10, 2), (3, 4)))


def alert(**payload):
    return {"id": "a1", **payload}


def test_an_alert_says_what_where_and_since_when():
    times = {"time": np.datetime64("2026-01-01T00:04"), "started_time": np.datetime64("2025-12-31T23:50")}
    drift = replace(DRIFT, source="log.csv", row=5082, **times)
    made = finding_alert(drift, stream="fraud", origin="x", utc=True)
    assert made["text"] == (
        "fraud drifted: tpr (positives caught) fell from 0.750 to about 0.250\n"
        "Since about 2025-12-31 23:50 UTC, found 2026-01-01 00:04 UTC"
    )
    assert (made["stream"], made["source"], made["row"], made["at"]) == ("fraud", "log.csv", 5082, 5080)
    assert json.loads(json.dumps(made))["confusion"] == [[10, 2], [3, 4]]


def test_an_alert_says_that_the_classes_shifted_with_the_drift():
    shift = Shift(at=5080, started=5070, before=Share.of(30, 100), after=Share.of(6, 10))
    made = finding_alert(replace(DRIFT, shift=shift), stream="fraud", origin="x")
    assert made["text"].endswith("\nClass mix: positives 0.300 to 0.600")
    assert made["positives"]["after"]["value"] == 0.6
    assert "positives" not in finding_alert(DRIFT, stream="fraud", origin="x")


def test_an_id_depends_on_watch_stream_and_event_alone():
    first = finding_alert(DRIFT, stream="a", origin="x")["id"]
    assert first == finding_alert(replace(DRIFT, row=7), stream="a", origin="x", utc=True)["id"]
    others = [finding_alert(DRIFT, stream="b", origin="x"), finding_alert(DRIFT, stream="a", origin="y")]
    assert first not in [other["id"] for other in others]


def test_the_drifts_of_two_versions_at_the_same_event_are_two_incidents():
    first, second = (finding_alert(replace(DRIFT, version=name), stream="a", origin="x") for name in ("v1", "v2"))
    assert first["id"] != second["id"]
    assert first["thread"] != second["thread"]


@pytest.mark.parametrize(
    "detector",
    [
        fr.FourRates(),
        fr.LFR(),
        NFR(),
        DDM(),
        EDDM(),
        DDMOCI(),
        PerfSim(),
    ],
)
def test_every_detector_s_drift_can_be_told(detector):
    drifts = detector.update_many([1, 0] * 2000 + [1, 0] * 2000, [1, 0] * 1900 + [1, 1] * 100 + [0, 1] * 2000)
    assert drifts
    for drift in drifts:
        json.dumps(finding_alert(drift, stream="s", origin="x"), allow_nan=False)


def test_a_drift_of_four_rates_says_from_what_to_what_and_when_it_started():
    (drift,) = fr.FourRates().update_many([1, 0] * 2000 + [1] * 30, [1, 0] * 2000 + [0] * 30)
    made = finding_alert(drift, stream="fraud", origin="x")
    change = made["changes"][0]
    assert (made["event"], made["kind"]) == ("drift", "drift")
    assert made["started_first"] <= made["started"] <= made["started_last"] <= made["at"]
    assert change["before"]["value"] > 0.99 > change["after"]["value"]
    before, after = drift.changes[0].before, drift.changes[0].after
    assert made["text"] == (
        f"fraud drifted: tpr (positives caught) fell from {before.value:.3f} to about {after.value:.3f}\n"
        f"Since about event {drift.started:,}, found at event {drift.at:,}"
    )


def test_what_became_of_a_drift_is_told_as_such_under_an_id_of_its_own():
    back = fr.RateChange("tpr", "up", 0.01, 0.05, None, 400, None, Share.of(227, 1000), Share.of(717, 1000))
    recovery = Finding(kind="recovery", at=12_649, started=12_300, changes=(back,), about=DRIFT, closes=True)
    made, drift = (finding_alert(finding, stream="fraud", origin="x") for finding in (recovery, DRIFT))
    assert (made["event"], made["kind"]) == ("recovery", "recovery")
    assert made["text"] == "fraud recovered: tpr (positives caught) 0.717\nClosed at event 12,649"
    assert (drift["status"], made["status"], made["thread"]) == ("firing", "resolved", drift["thread"])
    assert (made["drift"], made["closes"], made["started"]) == (5080, True, 12_300)
    assert not {"since", "confusion"} & made.keys()
    kinds = "confirmation", "withdrawal", "improvement", "acceptance", "drift"
    others = [finding_alert(replace(recovery, kind=kind), stream="fraud", origin="x")["id"] for kind in kinds]
    assert len({made["id"], drift["id"], *others}) == 7


def test_a_drift_that_was_accepted_at_once_says_what_its_rate_was():
    detector = fr.FourRates()
    (drift,) = detector.update_many([1, 0] * 2000 + [1] * 30, [1, 0] * 2000 + [0] * 30, first_only=True)
    text = finding_alert(detector.accept(force=True), stream="fraud", origin="x")["text"]
    assert text == f"fraud was accepted at its new level: tpr (positives caught) fell\nClosed at event {drift.at:,}"


def test_hostile_names_do_nothing_in_sentences():
    name = "<!channel> @everyone *b* _i_ `c` ~s~ [t](http://x) \x1b[31m\x07\u202e"
    text = finding_alert(DRIFT, stream=name, origin="x")["text"]
    assert not set("<>@*`~[]\x1b\x07\u202e") & set(text)
    assert " _" not in text
    assert finding_alert(DRIFT, stream=name, origin="x")["stream"] == name
    assert len(plain("x" * 10**6)) == 200
    assert "\n" in defused("a\nb")
    assert "\n" not in plain("a\nb")


def test_a_command_gets_json_on_its_input_and_facts_in_its_environment(tmp_path):
    got = tmp_path / "got"
    made = finding_alert(DRIFT, stream='fr"aud; rm -rf $HOME\0', origin="x")
    command = f'cat > {got}; printf "%s|%s|%s" "$FOURRATES_ID" "$FOURRATES_STREAM" "$FOURRATES_RATES" >> {got}'
    Command(command).deliver(made)
    line, facts = got.read_text().splitlines()
    assert json.loads(line)["at"] == 5080
    assert facts == f'{made["id"]}|fr"aud; rm -rf $HOME|tpr:down'


@pytest.mark.parametrize("stream", ["x" * 3_000_000, "\ud800 half a letter"], ids=["long", "half"])
def test_a_command_runs_whatever_the_stream_is_called(tmp_path, stream):
    made = {**finding_alert(DRIFT, stream="x", origin="x"), "stream": stream}
    command = f'cat > {tmp_path}/got; printf "%s" "$FOURRATES_STREAM" > {tmp_path}/stream'
    Command(command).deliver(made)
    assert json.loads((tmp_path / "got").read_text())["stream"] == stream.replace("\ud800", "?")
    assert (tmp_path / "stream").read_text().startswith(stream[0].replace("\ud800", "?") + stream[1])


def test_an_exit_status_that_is_not_0_is_a_failure():
    with pytest.raises(Failure, match="exit status 3"):
        Command("exit 3").deliver(alert())


def test_a_command_that_reads_nothing_is_no_failure():
    Command("exit 0").deliver(alert(text="x" * 300_000))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="process groups are POSIX")
def test_at_the_deadline_the_whole_process_group_is_ended(tmp_path):
    """On the old code the shell was killed and what it had started went on."""
    mark = tmp_path / "mark"
    script = f"(trap '' TERM; sleep 4; touch {mark}) & sleep 60"
    start = time.monotonic()
    with pytest.raises(Failure, match=r"still running after 0\.3 s"):
        Command(script, deadline=0.3).deliver(alert())
    assert time.monotonic() - start < 3.5
    time.sleep(max(0.0, 4.5 - (time.monotonic() - start)))
    assert not mark.exists()


class Service:
    """In place of Apprise: answers as it is told."""

    def __init__(self, answer):
        self.answer, self.sent = answer, []

    def add(self, url):
        return "://" in url

    def notify(self, **message):
        self.sent.append(message)
        return self.answer() if callable(self.answer) else self.answer


@pytest.fixture
def service(monkeypatch):
    def install(answer):
        made = Service(answer)
        monkeypatch.setitem(sys.modules, "apprise", SimpleNamespace(Apprise=lambda: made))
        return made

    return install


def test_apprise_gets_the_text_without_mentions_or_markup(service):
    made = service(True)
    Apprise("slack://token").deliver(alert(text="<!channel> *now*", stream="<!here>", kind="drift"))
    (message,) = made.sent
    assert "now" in message["title"]
    assert "a1" not in message["body"]
    assert message["body_format"] == "text"
    assert not set("<>*") & set(message["body"] + message["title"])


@pytest.mark.parametrize("answer", [False, None, 0])
def test_a_falsy_result_of_apprise_is_a_failure(service, answer):
    service(answer)
    with pytest.raises(Failure, match="did not accept it"):
        Apprise("slack://token").deliver(alert())


def test_apprise_that_hangs_is_left_at_the_deadline_and_not_called_again_meanwhile(service):
    made = service(lambda: time.sleep(1.0))
    channel = Apprise("slack://token", deadline=0.2)
    with pytest.raises(Failure, match=r"longer than 0\.2 s"):
        channel.deliver(alert())
    with pytest.raises(Failure, match="still busy"):
        channel.deliver(alert())
    assert len(made.sent) == 1


def test_an_address_apprise_does_not_know_is_refused_at_once_without_its_secrets(service):
    service(True)
    with pytest.raises(ValueError, match="does not know") as refused:
        Apprise("nonsense:TOKEN")
    assert "TOKEN" not in str(refused.value)
    assert "TOKEN" not in Apprise("slack://TOKEN").name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_real_apprise_posts_to_a_real_server(receiver):
    pytest.importorskip("apprise")
    Apprise(f"json://127.0.0.1:{receiver.port}/").deliver(alert(text="<!channel> drift", stream="fraud"))
    (request,) = receiver.requests
    assert b"drift" in request.body
    assert b"<!channel>" not in request.body
    receiver.default = b"HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n"
    with pytest.raises(Failure):
        Apprise(f"json://127.0.0.1:{receiver.port}/").deliver(alert(text="x"))
