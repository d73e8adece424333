"""`detect --state` every night: exit status, headline, JSON and table say how things are, also when nothing is new."""

import json
import re
from html import unescape

import numpy as np
import pytest

from fourrates.streams import fraud


def write(path, times, truths, preds, country=None):
    head = "timestamp,y_true,y_pred" + ("" if country is None else ",country")
    columns = [np.datetime_as_string(times), truths, preds, *([] if country is None else [country])]
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in zip(*columns, strict=True))]) + "\n")


def night(fourrates, folder, state, *words):
    """One night: the status with every --fail-on, the JSON, and the first line that a person sees."""
    ran = fourrates("detect", folder, "--state", state, "--json", *words)
    assert ran.status == 0, ran.err
    found = json.loads(ran.out)
    statuses = {}
    for fail_on in ("drift", "open", "confirmed", "no-events"):
        ran = fourrates("detect", folder, "--state", state, "--fail-on", fail_on)
        statuses[fail_on] = ran.status
    return found, ran.out.splitlines()[0], statuses


@pytest.mark.slow
def test_the_demo_cut_into_days_is_red_from_the_first_to_the_last_night_of_its_drift(fourrates, tmp_path):
    stream, folder, state = fraud(seed=5), tmp_path / "days", tmp_path / "state"
    folder.mkdir()
    first, last = (stream.times[change].astype("M8[D]") for change in stream.changes)
    found, alarm = [], None
    for day in np.unique(stream.times.astype("M8[D]"))[:-1]:
        own = stream.times.astype("M8[D]") == day
        write(folder / f"{day}.csv", stream.times[own], stream.y_true[own], stream.y_pred[own])
        report, line, statuses = night(fourrates, folder, state, "--report", tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        broken = first <= day <= last
        assert report["status"] == ("drifted" if broken else "stable"), (day, report["status"])
        assert statuses == {"drift": 0, "open": int(broken), "confirmed": int(broken), "no-events": 1}
        found += report["findings"]
        if not broken:
            assert line.startswith("Stable: ")
            assert report["open"] == []
            continue
        if alarm is None:
            alarm = next(one["at"] for one in found if one["kind"] == "drift")
        seen = slice(alarm + 1, report["events"])
        positives = stream.y_true[seen] == 1
        tpr = (stream.y_pred[seen] == 1)[positives].mean()
        now = report["open"][0]["now"]["tpr"]
        assert (now["now"]["n"], now["state"]) == (positives.sum(), "confirmed")
        assert now["now"]["value"] == pytest.approx(tpr)
        assert line.startswith(f"Drifted: tpr {tpr:.3f} (")
        assert re.search(rf"Drifted</em>: tpr fell from 0.7\d\d to {tpr:.3f}<", page)
        started = np.datetime64(report["open"][0]["started_time"])
        assert abs(started - stream.times[stream.changes[0]]) < np.timedelta64(60, "m")
    kinds = [one["kind"] for one in found]
    assert kinds.count("drift") == 2
    assert kinds[-1] == "recovery"


@pytest.fixture(scope="module")
def countries(tmp_path_factory):
    """Twelve days of seven countries with a reference; tpr falls in one of them on the sixth, and stays down."""
    folder = tmp_path_factory.mktemp("countries")
    random = np.random.default_rng(3)
    size, names = 24_000, np.array(["AT", "CH", "DE", "ES", "FR", "IT", "PT"])
    country = names[random.integers(0, 7, size)]
    times = np.datetime64("2026-06-01", "s") + np.arange(size) * (12 * 86_400 // size)
    truth = (random.random(size) < 0.3).astype(int)
    away = (country == "ES") & (np.arange(size) >= size // 2) & (truth == 1)
    right = random.random(size) < np.where(away, 0.45, np.where(truth == 1, 0.8, 0.95))
    write(folder / "all.csv", times, truth, np.where(right, truth, 1 - truth), country)
    rows = [
        f"{t},{p},{c}"
        for c in names
        for t, p, n in ((0, 0, 950), (0, 1, 50), (1, 0, 200), (1, 1, 800))
        for _ in range(n)
    ]
    (folder / "reference.csv").write_text("\n".join(["y_true,y_pred,country", *rows]) + "\n")
    return folder


@pytest.mark.slow
def test_an_open_drift_stays_in_the_headline_with_labels_stopped_until_it_is_accepted(fourrates, countries, tmp_path):
    lines = (countries / "all.csv").read_text().splitlines()
    folder, state = tmp_path / "days", tmp_path / "state"
    folder.mkdir()
    words = ["--by", "country", "--reference", countries / "reference.csv", "--budget", "1 per year"]
    for day in range(12):
        rows = lines[1 + day * 2000 : 1 + (day + 1) * 2000]
        (folder / f"{day:02}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
        report, line, statuses = night(fourrates, folder, state, *words)
        broken = day >= 6
        assert (report["status"], statuses["open"]) == (("drifted", 1) if broken else ("stable", 0)), day
        if broken:
            assert report["open"][0]["segment"] == "ES"
            assert line.startswith("1 of 7 segments drifted: ES: tpr ")
            assert report["open"][0]["started_time"][:10] in ("2026-06-06", "2026-06-07")
        else:
            assert line == "Stable: no drift is open in 7 segments"
    # Labels stop: rows without one, then no new file at all.
    unlabelled = [",".join(["2026-06-13T00:00:00", "", *line.split(",")[2:]]) for line in lines[1:200]]
    for extra in (unlabelled, None):
        if extra is not None:
            (folder / "12.csv").write_text("\n".join([lines[0], *extra]) + "\n")
        ran = fourrates("detect", folder, "--state", state, "--fail-on", "no-events")
        assert ran.status == 1
        assert f"{12 if extra else 13} files were read before, and have not changed" in ran.err
        assert "no new events since 2026-06-12 22:39" in ran.err
        assert ran.out.startswith("1 of 7 segments drifted: ES: tpr ")
    ran = fourrates("detect", folder, "--state", state, "--accept", "IT")
    assert "no drift is open there" in ran.err
    ran = fourrates("detect", folder, "--state", state, "--fail-on", "open", "--accept", "ES")
    assert ran.status == 0
    assert ran.out.startswith("Stable: no drift is open in 7 segments\nNo new drift and 1 acceptance in ")


def test_a_drift_is_accepted_after_a_time_where_that_is_asked_for(fourrates, countries, tmp_path):
    words = ["--by", "country", "--budget", "1 per year", "--fail-on", "open"]
    assert fourrates("detect", countries / "all.csv", *words, "--accept-after", "30").status == 1
    assert fourrates("detect", countries / "all.csv", *words, "--accept-after", "2").status == 0


@pytest.mark.parametrize("command", ["detect", "watch"])
def test_settings_that_cannot_change_later_are_an_error(fourrates, countries, tmp_path, command):
    log, state, words = tmp_path / "log.csv", tmp_path / "state", ["--by", "country", "--state", tmp_path / "state"]
    log.write_text((countries / "all.csv").read_text()[:200_000].rpartition("\n")[0] + "\n")

    def run(*more):
        if command == "detect":
            return fourrates("detect", log, *words, *more)
        with log.open() as file:
            return fourrates("watch", "-", *words, *more, stdin=file)

    assert run().status == 0
    before = state.read_bytes()
    ran = run("--reference", countries / "reference.csv")
    assert ran.status == 2
    assert "only --budget can be changed" in ran.err
    assert state.read_bytes() == before
    ran = run("--budget", "12345")
    assert ran.status == 0, ran.err
    assert "budget: one false alarm in 12,345 events; it was one in " in ran.err


def test_a_budget_in_time_follows_the_volume_of_later_nights(fourrates, tmp_path):
    random, folder = np.random.default_rng(1), tmp_path / "days"
    folder.mkdir()
    arls = []
    for night, size in enumerate((200, 2000, 2000)):
        truths = random.random(size) < 0.3
        preds = truths ^ (random.random(size) < 0.1)
        times = np.full(size, np.datetime64("2026-09-01") + night)
        write(folder / f"{night}.csv", times, truths * 1, preds * 1)
        ran = fourrates("detect", folder, "--state", tmp_path / "state", "--json")
        assert ran.status == 0, ran.err
        arls.append(json.loads(ran.out)["parameters"]["arl"])
    ran = fourrates("detect", folder, "--state", tmp_path / "state", "--json")
    month = 30.44 * 4200 / 3
    arls.append(json.loads(ran.out)["parameters"]["arl"])
    assert arls == pytest.approx([30.44 * 200, 30.44 * 200, 30.44 * 1100, month])


# The report of a night --------------------------------------------------------------------------------------

PER_DAY = 1_000


@pytest.fixture(scope="module")
def payments(tmp_path_factory):
    """Fourteen days in files, with a zone in their times; tpr falls on the tenth. And where it fell."""
    folder, random = tmp_path_factory.mktemp("payments"), np.random.default_rng(7)
    size, start = 14 * PER_DAY, 9 * PER_DAY + 700
    times = np.datetime64("2026-10-01", "s") + np.arange(size) * 86_400 // PER_DAY
    truth = (random.random(size) < 0.3).astype(int)
    right = random.random(size) < np.where(truth == 0, 0.95, np.where(np.arange(size) < start, 0.85, 0.4))
    country = np.array(["AT", "DE"])[np.arange(size) % 2]
    zoned = np.char.add(np.datetime_as_string(times), "Z")
    for day in range(14):
        own = slice(day * PER_DAY, (day + 1) * PER_DAY)
        rows = zip(zoned[own], truth[own], np.where(right, truth, 1 - truth)[own], country[own], strict=True)
        lines = ["timestamp,y_true,y_pred,country", *(",".join(map(str, row)) for row in rows)]
        (folder / f"{day + 1:02}.csv").write_text("\n".join(lines) + "\n")
    return folder, truth, start


def nights(fourrates, folder, state, *words):
    """The nights from the drift's first on, and one without a new file: what is open, the first lines, the page."""
    days = sorted(folder.glob("*.csv"))
    for files in (days[:11], *([day] for day in days[11:]), days[-1:]):
        page = state.parent / "page.html"
        ran = fourrates("detect", *files, "--state", state, "--report", page, "--json", *words)
        assert ran.status == 0, ran.err
        found = json.loads(ran.out)
        seen = re.sub("<script.*?</script>|<style.*?</style>", "", page.read_text(), flags=re.DOTALL)
        again = fourrates("detect", *files, "--state", state, *words)
        yield found, again.out.splitlines(), unescape(re.sub("<.*?>", " ", seen))


@pytest.mark.parametrize("words", [[], ["--by", "country"]])
def test_every_report_dates_and_counts_an_open_drift_from_its_start(fourrates, payments, tmp_path, words):
    folder, truth, _ = payments
    for night, (found, lines, page) in enumerate(nights(fourrates, folder, tmp_path / "state", *words)):
        worst = found["open"][0]
        started, at = (worst[name][:16].replace("T", " ") for name in ("started_time", "time"))
        assert any(f"since about {started}" in line for line in lines)
        assert re.search(rf"Since about\s+{started}\s+found {at}, after ", page)
        assert f"released around {started}." in page
        assert f"compare the events since {started} with those before" in page
        assert "iloc" not in page
        own = truth[int(worst["segment"] == "DE") :: 2] if words else truth
        events = own[: (min(11 + night, 14) * PER_DAY) // (2 if words else 1)]
        size, least, name = re.search(
            r"([\d,]+) rows since it started, (?:at least )?([\d,]+) of them (\w+)", page
        ).groups()
        off = abs(int(size.replace(",", "")) - (len(events) - worst["started"]))
        assert off <= (0 if night else 4)  # the trace of the first night counts in bins
        since_alarm, since_start = (events[worst[which] + 1 :].sum() for which in ("at", "started"))
        assert name == "positives"
        assert since_alarm <= int(least.replace(",", "")) <= since_start + (0 if night else 4)
        assert "2026-10-01 00:00 to" in lines[-1]
        assert lines[-1].endswith(" UTC")
        assert found["last_time"].endswith("Z")
        assert re.search(r"to 2026-10-\d\d \d\d:\d\d UTC\.", page)


def test_the_report_of_a_night_tells_its_events_from_those_before(fourrates, payments, tmp_path):
    folder, _, _ = payments
    first, *later, last = (page for _, _, page in nights(fourrates, folder, tmp_path / "state"))
    assert "this run" not in first
    for night, page in enumerate(later, 12):
        assert f"this run: 1,000 events; the state has {night},000" in page
        assert f"No new drift in this run; so far {night},000 events" in page
        assert re.search(r"\b0 alarms in 1,000 events of this run; 0\.0\d+ false ones expected\.", page)
    assert "No new drift in this run; so far " in last
    assert "What it looks like" not in last
    assert "false ones expected" not in last


def test_a_drift_in_the_one_file_of_a_night_has_its_rows_and_a_command(fourrates, payments, tmp_path):
    folder, _, start = payments
    days, log = sorted(folder.glob("*.csv")), tmp_path / "log.csv"
    for count in (8, 12):  # a file that grows
        rows = [line for day in days[:count] for line in day.read_text().splitlines()[1:]]
        log.write_text("\n".join(["timestamp,y_true,y_pred,country", *rows]) + "\n")
        ran = fourrates("detect", log, "--state", tmp_path / "state", "--report", tmp_path / "page.html", "--json")
        assert ran.status == 0, ran.err
    row = json.loads(ran.out)["open"][0]["started_row"]
    assert abs(row - start) < 100
    page = unescape((tmp_path / "page.html").read_text())
    assert f"compare rows {row:,} to the last of {log}"[:60] in page
    assert f".iloc[{row - 1}:]" in page


def test_the_report_of_the_night_of_a_recovery_says_when_it_was_open(fourrates, payments, tmp_path):
    folder, _, _ = payments
    days, back, page = sorted(folder.glob("*.csv")), tmp_path / "back.csv", tmp_path / "page.html"
    back.write_text(days[3].read_text().replace("-10-04T", "-10-15T"))
    ran = fourrates("detect", *days, "--state", tmp_path / "state", "--json")
    opened = json.loads(ran.out)["open"][0]
    ran = fourrates("detect", back, "--state", tmp_path / "state", "--json", "--report", page)
    (recovery,) = json.loads(ran.out)["findings"]
    assert recovery["kind"] == "recovery"
    drift, found, over = (
        one[:16].replace("T", " ") for one in (opened["started_time"], opened["time"], recovery["started_time"])
    )
    text = re.sub("<.*?>", " ", page.read_text())
    assert re.search(rf"Was open from\s+{drift}\s+to {over}; found after", text)
    assert f"Leave the events since {drift} to {over} out of training data." in text
    assert re.search(rf"Drift of\s+{found} ", text)
