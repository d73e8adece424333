"""The live page in Chromium, against a real server: what happens is seen at once, and nothing is lost on the way."""

import re
import subprocess
import time

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="the service is not installed; make test-ui installs it")
pytest.importorskip("selenium", reason="selenium is not installed; make test-ui installs it")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from .serving import (
    BUTTON,
    Server,
    broken,
    check_width,
    findings,
    note_when,
    pairs,
    press,
    sound,
    text,
    until,
)
from .test_report_in_a_browser import INK, errors, picture
from .test_report_of_anything import HOSTILE, SIZES

# What happens is seen -----------------------------------------------------------------------------------------------


def test_an_empty_server_tells_how_to_make_the_first_monitor_and_the_commands_do_it(server, seen):
    browser = seen(server)
    until(browser, "return document.querySelector('h1').textContent === 'No monitors yet'")
    commands = browser.execute_script("return [...document.querySelectorAll('pre')].map((e) => e.textContent)")
    assert len(commands) == 2
    for command in commands:
        answer = subprocess.run(["bash", "-c", command + " -sS --fail-with-body"], capture_output=True, text=True)
        assert answer.returncode == 0, answer
    assert until(browser, "return document.querySelector('.monitor th')?.textContent") == "fraud"
    until(browser, "return document.querySelector('.monitor b').textContent === 'Young'")
    assert re.fullmatch(r"t[pn]r needs [\d,]+ more (posi|nega)tives", text(browser, ".monitor .rate"))
    assert errors(browser) == []


def test_a_drift_appears_within_two_seconds_of_its_event(server, seen):
    server.put("fraud")
    server.send("fraud", *sound(2000))
    browser = seen(server, "fraud")
    until(browser, "return document.querySelector('h1 em').textContent === 'Stable'")
    assert findings(browser) == []
    note_when(browser, "document.querySelector('.drift') && document.querySelector('h1 em').textContent === 'Drifted'")
    began = time.time()
    found = server.send("fraud", *broken(300))["findings"]
    assert len(found) == 2, "the drift and its confirmation"
    assert until(browser, "return window.seenAt") / 1000 - began < 2
    until(browser, "return document.querySelectorAll('.drift').length === 2")
    assert sorted(findings(browser)) == sorted(found)
    assert re.match(r"Drifted: tpr fell from 0\.8\d\d to between 0\.\d+ and 0\.\d+$", text(browser, "h1"))
    assert "tpr 0.8" in text(browser, ".drift .what")
    assert text(browser, ".drift:last-child .tag") == "Open"
    assert errors(browser) == []


def test_a_prediction_shift_is_a_line_of_words_and_no_drift(server, seen):
    server.put("fraud", reference=None, arl=10_000)
    random, positives = np.random.default_rng(1), np.repeat([0.03, 0.09], [8_000, 2_000])
    pred = (random.random(10_000) < positives).astype(int).tolist()
    body = {"id": [*range(10_000)], "y_pred": pred}
    found = server.service.ask(server.service.monitor("fraud", "/predictions"), body)["findings"]
    browser = seen(server, "fraud")
    until(browser, "return document.querySelectorAll('.drift').length === 1")
    assert findings(browser) == found
    assert text(browser, ".drift b") == "Prediction shift"
    assert re.fullmatch(r"predicted positives \d\.\d % → \d+\.\d %", text(browser, ".drift .what"))
    browser.execute_script("document.querySelector('.drift summary').click()")
    assert text(browser, ".drift .body p").strip() == text(browser, ".drift .what")
    assert re.search(r"Started between \(90 %\)predictions [67],\d+ and 8,\d+", text(browser, ".drift .facts"))
    shown = browser.find_elements(By.CSS_SELECTOR, ".drift .moves, .drift .tag")
    assert not any(one.is_displayed() for one in shown), "no rates, and nothing is open"
    assert errors(browser) == []


def test_a_drift_appears_in_the_list_of_all_within_two_seconds(server, seen):
    for name in ("one", "two", "three"):
        server.put(name)
        server.send(name, *sound(2000))
    browser = seen(server)
    until(browser, "return document.querySelectorAll('.monitor.stable').length === 3")
    assert text(browser, "h1") == "No drift is open"
    note_when(browser, "document.querySelector('.monitor').className === 'monitor drifted'")
    began = time.time()
    server.send("two", *broken(300))
    assert until(browser, "return window.seenAt") / 1000 - began < 2
    assert text(browser, ".monitor:first-child th") == "two"  # what needs a person comes first
    assert text(browser, "h1").startswith("1 of 3 monitors drifted. Worst: two, tpr fell from 0.8")
    assert browser.title == "(1 drifted) fourrates"


def test_the_headline_is_about_the_whole_though_segments_drifted_later(server, seen):
    server.put("shops", by=["shop"], arl=5_000)
    server.send("shops", *sound(6_000), by={"shop": ["a", "b", "c"] * 2_000})
    server.send("shops", *broken(300), by={"shop": ["a", "b", "c"] * 100})
    detail = server.detail("shops")
    assert detail["last_finding"]["segment"], "else this shows nothing"
    browser = seen(server, "shops")
    until(browser, "return document.querySelectorAll('.drift').length > 1")
    assert text(browser, "h1").startswith("Drifted: tpr ")
    opened = f""".drift[data-id="{detail["drift"]["id"]}"] .tag"""
    assert browser.execute_script("return document.querySelector(arguments[0]).offsetParent !== null", opened)
    of_whole = server.service.ask(server.service.monitor("shops", "/drifts?of=overall"))["drifts"]
    marked = browser.execute_script("return fourrates.view().charts.marks.map((one) => one.id)")
    assert {*marked} == {one["id"] for one in of_whole if one["kind"] in ("drift", "recovery")}
    seen(server)
    until(browser, "return document.querySelector('.monitor .rate')")
    assert text(browser, "h1").startswith("Drifted: tpr ")
    assert text(browser, ".monitor .rate").startswith("tpr ")


def test_a_class_mix_shift_has_its_time(server, seen):
    server.put("m", arl=5_000)
    server.send("m", *sound(4_000))
    truth, pred = sound(6_000, 1)
    kept = np.flatnonzero((truth == 0) | (np.arange(6_000) % 3 == 0))
    server.send("m", truth[kept], pred[kept])
    browser = seen(server, "m")
    shown = text(browser, ".pair section:first-child p")
    assert re.fullmatch(r"Shifted ([\d-]+ )?\d\d:\d\d: positives went from \d+ % to \d+ %\. The classifier .*", shown)


@pytest.mark.parametrize(("labels", "positive"), [([0, 1], None), ([0, 1], 1), ([1, 0], 1)])
def test_the_rates_of_a_matrix_are_those_of_the_monitor(server, seen, labels, positive):
    server.put("m", labels=labels, positive=positive, reference=None)
    server.send("m", [1] * 10 + [0] * 100, [1] * 7 + [0] * 3 + [0] * 95 + [1] * 5)
    browser = seen(server, "m")
    until(browser, "return document.querySelector('.matrices .rates')")
    assert text(browser, ".matrices .rates").startswith("tpr 0.700tnr 0.950")
    assert "0.700" in text(browser, ".chart header")


def test_a_drift_reaches_the_alarm_in_the_chart_of_the_evidence_and_a_recovery_asks_nothing(server, seen):
    server.put("m", arl=20_000)
    for part in (sound(3_000), broken(600), sound(3_000, 1)):
        server.send("m", *part)
        time.sleep(0.1)
    browser = seen(server, "m")
    until(browser, "return document.querySelectorAll('.drift').length > 1")
    levels = "fourrates.view().charts.charts.find((c) => c.box.ariaLabel.startsWith('Alarm level'))"
    assert browser.execute_script(f"return {levels}.columns()[1].filter((share) => share === 1).length") == 1
    browser.execute_script("document.querySelector('.drift.recovery details').open = true")
    buttons = "return [...document.querySelectorAll('.drift.recovery button:not([hidden])')].map((e) => e.textContent)"
    until(browser, buttons + ".join() === 'Show in the charts'")


def test_a_withdrawn_drift_is_told_and_nothing_is_open(server, seen):
    server.put("m", arl=20_000, reference=None)
    server.send("m", *pairs(4_000, 0.85, 1))
    server.send("m", *pairs(74, 0.45, 2))
    server.send("m", *pairs(600, 0.85, 3))
    browser = seen(server, "m")
    until(browser, "return document.querySelectorAll('.drift').length === 2")
    assert text(browser, "h1").startswith("Stable: tpr 0.8")
    assert text(browser, ".lead").startswith("A drift was withdrawn ")
    assert text(browser, ".drift:first-child summary").startswith("Drift withdrawn")
    assert not any(tag.is_displayed() for tag in browser.find_elements(By.CSS_SELECTOR, ".drift .tag"))


def test_a_drift_is_acknowledged_by_somebody_and_accepted_as_normal(server, seen):
    server.put("m", reference=None)
    server.send("m", *sound(4_000))
    drift, *_ = server.send("m", *broken(300))["findings"]
    browser = seen(server, "m")
    until(browser, "return document.querySelector('h1 em').textContent === 'Drifted'")
    press(browser, "Acknowledge")
    until(browser, "return document.querySelector('dialog[open] h2')?.textContent === 'Acknowledge'")
    who, why = browser.find_elements(By.CSS_SELECTOR, "dialog[open] input")
    who.send_keys("Ada")
    why.send_keys("looking into it", Keys.ENTER)
    until(browser, "return document.querySelector('header .buttons').textContent.includes('by Ada: looking into it')")
    found = server.service.ask(server.service.monitor("m", f"/drifts/{drift}"))
    assert (found["acknowledged_by"], found["note"]) == ("Ada", "looking into it")
    assert server.detail("m")["status"] == "drifted", "it stays open"
    press(browser, "Accept as normal")
    until(browser, "return document.querySelector('dialog[open] h2')?.textContent === 'Accept as normal'")
    assert browser.execute_script("return document.querySelector('dialog[open] input').value") == "Ada"
    press(browser, "Accept")
    until(browser, "return document.querySelector('h1 em').textContent !== 'Drifted'")
    until(browser, "return document.querySelector('.drift summary').textContent.startsWith('Accepted as normal')")
    assert server.detail("m")["status"] == "stable"
    assert errors(browser) == []


def test_the_charts_grow_with_the_stream(server, seen):
    server.put("fraud")
    server.send("fraud", *sound(1000))
    browser = seen(server, "fraud")
    last = "return fourrates.view().charts.series?.event.at(-1)"
    until(browser, last + " === 1000")
    for step in range(3):
        time.sleep(1.1)  # points are a second apart
        server.send("fraud", *sound(500, step))
    until(browser, last + " === 2500")
    assert browser.execute_script("return fourrates.view().charts.charts.map((c) => c.plot.data[0].length)") == [
        4
    ] * 5 + [90]


def test_what_a_person_is_doing_stays_while_news_arrive(server, seen):
    for i in range(9):
        server.put(f"m{i}", reference=None)
        server.send(f"m{i}", *sound(100))
    browser = seen(server)
    until(browser, "return document.querySelectorAll('.monitor').length === 9")
    shown = "return [...document.querySelectorAll('.monitor:not([hidden]) th')].map((e) => e.textContent).join()"
    field = browser.find_element(By.CSS_SELECTOR, "[type=search]")
    field.send_keys("m3")
    until(browser, shown + " === 'm3'")
    server.send("m3", *sound(2000, 1))
    until(browser, "return document.querySelector('.monitor:not([hidden]) b').textContent === 'Stable'")
    field.send_keys(Keys.BACKSPACE, "4")
    until(browser, shown + " === 'm4'")
    browser = seen(server, "m3")
    server.send("m3", *broken(300))
    until(browser, "return document.querySelectorAll('.drift').length > 0")
    summary = browser.find_element(By.CSS_SELECTOR, ".drift:last-child summary")
    summary.click()
    until(browser, "return document.querySelector('.drift .moves')")
    before = len(findings(browser))
    server.send("m3", *sound(3000, 2))
    until(browser, "return document.querySelectorAll('.drift').length > arguments[0]", before)
    assert browser.switch_to.active_element == summary
    assert browser.find_element(By.CSS_SELECTOR, ".drift:last-child .moves").is_displayed()
    assert browser.find_elements(By.CSS_SELECTOR, ".drift.fresh") != []
    assert errors(browser) == []


def test_rejected_rows_are_shown(server, seen):
    server.put("m")
    ids = [*range(100)]
    server.service.ask(server.service.monitor("m", "/predictions"), {"id": ids, "y_pred": [0] * 100})
    labels = {"id": ids, "y_true": [0] * 99 + ["no class"]}
    server.service.ask(server.service.monitor("m", "/labels?bad=keep"), labels)
    browser = seen(server, "m")
    press(browser, "Show rejected rows")
    assert "no class" in until(browser, "return document.querySelector('.rejected li')?.textContent")


# Nothing is lost ----------------------------------------------------------------------------------------------------


def test_what_happened_while_the_server_was_away_is_caught_up(server, seen):
    server.put("fraud")
    server.send("fraud", *sound(2000))
    server.send("fraud", *broken(300))
    browser = seen(server, "fraud")
    until(browser, "return document.querySelectorAll('.drift').length === 2")
    server.kill()
    until(browser, "return document.querySelector('.connection').textContent.endsWith('. Reconnecting…')")
    assert re.match(r"Showing last known state of \d\d:\d\d:\d\d\.", text(browser, ".connection"))
    assert "stale" in browser.execute_script("return document.body.className")
    server.start()
    server.send("fraud", *sound(3000, 2))  # back at the reference: a recovery
    until(browser, "return document.querySelector('.connection').textContent === 'Live'", seconds=20)
    until(browser, "return document.querySelectorAll('.drift').length === 3")
    assert text(browser, ".drift:first-child summary").startswith("Recovery")
    until(browser, "return document.querySelector('h1 em').textContent === 'Recovered'")
    until(browser, "return fourrates.view().charts.series.event.at(-1) === 5300")
    assert "stale" not in browser.execute_script("return document.body.className")


def test_a_page_that_stayed_open_and_one_loaded_anew_are_the_same(server, seen):
    server.put("fraud")
    server.send("fraud", *sound(2000))
    browser = seen(server, "fraud")
    for seed in range(3):
        server.send("fraud", *broken(400, seed))
        server.send("fraud", *sound(2000, seed + 10))
    listed = server.service.ask(server.service.monitor("fraud", "/drifts"))["drifts"]
    assert len(listed) >= 4
    until(browser, f"return document.querySelectorAll('.drift').length === {len(listed)}")
    stayed = findings(browser)
    assert stayed == [one["id"] for one in listed]
    browser = seen(server, "fraud")
    if len(listed) > 12:
        press(browser, "Show earlier ones")
    until(browser, f"return document.querySelectorAll('.drift').length === {len(listed)}")
    assert findings(browser) == stayed


def test_a_page_left_and_come_back_to_is_live_and_holds_no_connection_meanwhile(server, seen):
    """A browser has six connections for a server: pages that are kept for the back button must not use them up."""
    server.put("fraud")
    server.send("fraud", *sound(100))
    for _ in range(8):
        browser = seen(server, "fraud")
    server.send("fraud", *sound(100, 1))
    until(browser, "return document.querySelector('.kicker').textContent.includes('200 events')", seconds=3)
    browser.get("about:blank")
    server.send("fraud", *sound(100, 2))
    browser.back()
    until(browser, "return document.querySelector('.kicker')?.textContent.includes('300 events')", seconds=5)


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), SIZES[::3])
def test_names_that_try_to_run_are_text(server, seen, width, scheme):
    names = [name[:190] for name in HOSTILE]
    columns = [names[0][:90], names[1][:90]]
    server.put("fraud", labels=names, by=columns, positive=None, reference=None)
    random = np.random.default_rng(1)
    truth = random.integers(0, len(names), 9000)
    right = random.random(9000) < np.where((truth == 1) & (np.arange(9000) > 5000), 0.2, 0.95)
    pred = np.where(right, truth, (truth + 1) % len(names))
    values = random.integers(0, len(names), 9000)
    by = {column: [names[i] for i in values] for column in columns}
    sent = server.send("fraud", [names[i] for i in truth], [names[i] for i in pred], by=by)
    assert sent["findings"]
    browser = seen(server, "fraud", width, scheme=scheme)
    until(browser, "return document.querySelectorAll('.drift').length > 0")
    until(browser, "return document.querySelectorAll('.segments tbody tr').length > 0")
    for button in browser.find_elements(By.CSS_SELECTOR, ".small.more > button"):
        browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script("return window.ran") is None
    assert errors(browser) == []  # the policy had nothing to stop: nothing came in
    assert browser.find_elements(By.CSS_SELECTOR, "main img, iframe, style") == []
    shown = text(browser, "main")
    for name in names:
        if name.isprintable():
            assert name[:90] in shown
    assert r"\u{2028}\u{2029}\u{1b}" in shown
    check_width(browser, width)
    picture(browser, f"serve-hostile-{scheme}-{width}")


def test_what_came_in_all_the_same_would_not_run(server, seen):
    """The policy of the server alone stops it."""
    browser = seen(server)
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
        "const i = document.createElement('img'); i.setAttribute('onerror', 'window.ran = 2');"
        "i.src = 'static/none.png'; document.body.append(i);"
    )
    time.sleep(0.5)
    assert browser.execute_script("return window.ran") is None
    assert "Content Security Policy" in str(errors(browser))


# Sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_page_fits_and_is_drawn_at_every_size_light_and_dark(lively, seen, width, scheme):
    browser = seen(lively, width=width, scheme=scheme)
    until(browser, "return document.querySelectorAll('.monitor').length === 3")
    check_width(browser, width)
    picture(browser, f"serve-monitors-{scheme}-{width}")
    browser = seen(lively, "card fraud", width=width, scheme=scheme)
    until(browser, "return document.querySelectorAll('.drift').length > 0")
    until(browser, "return document.querySelectorAll('.segments tbody tr').length === 3")
    canvases = browser.find_elements(By.CSS_SELECTOR, ".chart canvas")
    assert len(canvases) == 6
    for canvas in canvases:
        assert browser.execute_script(INK, canvas) > 20  # different colours: curve, band, grid, text and their edges
    check_width(browser, width)
    assert errors(browser) == []
    picture(browser, f"serve-monitor-{scheme}-{width}")


def test_the_page_follows_when_the_scheme_changes(lively, seen):
    browser = seen(lively, "card fraud")
    until(browser, "return document.querySelectorAll('.chart canvas').length === 6")
    canvas = browser.find_element(By.CSS_SELECTOR, ".chart canvas")
    before = browser.execute_script("return arguments[0].toDataURL()", canvas)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    until(browser, "return arguments[0].toDataURL() !== arguments[1]", canvas, before)


def test_a_thousand_segments_are_paged_and_the_page_stays_quick(server, seen):
    server.put("shops", by=["shop"])
    random = np.random.default_rng(3)
    for _ in range(4):
        truth, pred = sound(10_000, random.integers(1 << 30))
        shop = [f"shop {i}" for i in np.arange(10_000) % 1000]
        server.send("shops", truth, pred, by={"shop": shop})
    browser = seen(server, "shops")
    assert until(browser, "return document.querySelectorAll('.segments tbody tr').length") == 20
    names, evidence = set(), []
    for place in range(50):
        status = f"{20 * place + 1:,} to {20 * place + 20:,} of 1,000"
        until(
            browser,
            "return document.querySelector('.segments').closest('section').textContent.includes(arguments[0])",
            status,
        )
        names |= set(text(browser, ".segments tbody .name").split("\n"))
        evidence += browser.execute_script(
            "return [...document.querySelectorAll('.segments .meter')].map((e) => Number(e.ariaValueNow))"
        )
        if place < 49:
            press(browser, "Next")
    assert len(names) == 1000
    assert evidence == sorted(evidence, reverse=True)
    assert browser.execute_script("return document.querySelectorAll('*').length") < 1500


SLOW = """
const real = window.fetch;
window.fetch = async (path, options) => {
  const answer = await real(path, options);
  if (!(options?.method) && arguments[0].some((part) => path.includes(part))) {
    window.held = (window.held ?? 0) + 1;
    await new Promise((done) => setTimeout(done, 1500));
  }
  return answer;
};
window.late = false;
"""  # answers are made by the server at once, and arrive when what they say is old


def test_a_slow_answer_does_not_stand_under_the_number_of_another_page(server, seen):
    server.put("shops", by=["shop"])
    truth, pred = sound(1000, 4)
    server.send("shops", truth, pred, by={"shop": [f"shop {i % 50}" for i in range(1000)]})
    browser = seen(server, "shops")
    assert until(browser, "return document.querySelectorAll('.segments tbody tr').length") == 20
    first = text(browser, ".segments tbody .name")
    browser.execute_script(SLOW, ["offset=0"])
    browser.execute_script("fourrates.view().segments.refresh().then(() => { window.late = true; });")
    press(browser, "Next")
    until(browser, "return window.late")
    until(browser, "return document.querySelector('section .tools [role=status]').textContent === '21 to 40 of 50'")
    assert not set(first.split("\n")) & set(text(browser, ".segments tbody .name").split("\n"))


def test_news_during_a_slow_look_lead_to_another(server, seen):
    server.put("fraud")
    server.send("fraud", *sound(2000))
    browser = seen(server, "fraud")
    until(browser, "return document.querySelector('h1 em').textContent === 'Stable'")
    browser.execute_script(SLOW, ["monitors/fraud"])
    browser.execute_script("fourrates.view().looks.again().then(() => { window.late = true; });")
    until(browser, "return window.held >= 4")  # how it is, the series, findings and segments
    server.send("fraud", *broken(300))
    until(browser, "return window.late", seconds=20)
    until(browser, "return document.querySelector('h1 em').textContent === 'Drifted'")
    until(browser, "return fourrates.view().charts.series.event.at(-1) === 2300")
    assert len(findings(browser)) == 2


def test_news_during_a_slow_list_lead_to_another(server, seen):
    server.put("old")
    server.put("fraud")
    server.send("fraud", *sound(2000))
    browser = seen(server)
    until(browser, "return document.querySelectorAll('.monitor').length === 2")
    browser.execute_script(SLOW, ["api/monitors"])
    browser.execute_script("fourrates.view().looks.again().then(() => { window.late = true; });")
    until(browser, "return window.held === 1")
    server.put("new")
    httpx.delete(server.service.address + server.service.monitor("old")).raise_for_status()
    server.send("fraud", *broken(300))
    until(browser, "return window.late")
    names = "return [...document.querySelectorAll('.monitor th')].map((e) => e.textContent).sort().join()"
    until(browser, names + " === 'fraud,new'")
    assert text(browser, ".monitor.drifted th") == "fraud"


# By keyboard ------------------------------------------------------------------------------------------------------


def tab_to(browser, script, most=40):
    """Press Tab until the focus is on what the script says."""
    for _ in range(most):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("const e = document.activeElement; return " + script):
            return browser.switch_to.active_element
    raise AssertionError(f"{most} times Tab did not lead to {script}")


def test_everything_is_reached_by_keyboard(lively, seen):
    browser = seen(lively)
    until(browser, "return document.querySelectorAll('.monitor').length === 3")
    tab_to(browser, "e.textContent === 'card fraud'").send_keys(Keys.ENTER)
    until(browser, "return document.querySelectorAll('.drift').length > 0")
    assert "#/monitor/card%20fraud" in browser.current_url
    chart = tab_to(browser, "e.classList.contains('chart')")
    assert "Arrow keys" in chart.get_attribute("aria-label")
    sight = "return fourrates.view().charts.sight"
    assert browser.execute_script(sight) is None
    chart.send_keys("+")
    low, high = browser.execute_script(sight)
    assert low < high
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    first = chart.find_element(By.CSS_SELECTOR, ".readout").text
    chart.send_keys(Keys.ARROW_RIGHT)
    assert re.match(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d: tpr 0\.", first)
    assert chart.find_element(By.CSS_SELECTOR, ".readout").text != first
    chart.send_keys("0")
    assert browser.execute_script(sight) is None
    tab_to(browser, "e.matches('.segments a')").send_keys(Keys.ENTER)
    until(browser, "return document.querySelector('.kicker').textContent.includes('country FR')")
    assert "/segment/%5B%22FR%22%5D" in browser.current_url
    browser.back()
    until(browser, "return document.querySelectorAll('.drift').length > 0")
    finding = tab_to(browser, "e.matches('.drift summary')", 60)
    finding.send_keys(Keys.ENTER)
    until(browser, "return document.querySelector('.drift details').open")
    for _ in range(5):  # the page may be drawn anew between the focus and the key
        tab_to(browser, "e.textContent === 'Show in the charts'").send_keys(Keys.ENTER)
        if browser.execute_script(sight):
            break
    until(browser, sight)
    browser.get(lively.service.address + "/#/monitor/card%20fraud/acknowledge")  # as alerts link to it
    until(browser, "return document.querySelector('dialog[open] h2')?.textContent === 'Acknowledge'")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    until(browser, "return document.querySelector('dialog[open]') === null")
    tab_to(browser, "e.textContent === 'All monitors'").send_keys(Keys.ENTER)
    until(browser, "return document.querySelectorAll('.monitor').length === 3")


# What a person does -----------------------------------------------------------------------------------------------


def test_alerts_of_a_monitor_and_of_a_segment_are_silenced_and_sent_again(server, seen):
    server.put("fraud", by=["country"])
    server.send("fraud", *sound(100), by={"country": ["FR", "DE"] * 50})
    silenced = {
        None: lambda: server.detail("fraud")["silenced_until"],
        "FR": lambda: server.service.ask(server.service.monitor("fraud", "/segments?segment=%5B%22FR%22%5D"))[
            "segments"
        ][0]["silenced_until"],
    }
    for segment, until_when in silenced.items():
        browser = seen(server, "fraud", segment=segment and [segment])
        press(browser, "Silence alerts")
        press(browser, "Silence")
        until(browser, "return document.querySelector('header .buttons').textContent.includes('silenced until')")
        assert until_when() is not None
        press(browser, "End silence")
        until(browser, f"return {BUTTON}", "Silence alerts")
        assert until_when() is None
    assert server.detail("fraud")["silenced_until"] is None


def test_a_new_reference_is_set(server, seen):
    server.put("fraud")
    server.send("fraud", *sound(500))
    browser = seen(server, "fraud")
    press(browser, "New reference")
    field = until(browser, "return document.querySelector('dialog[open] textarea')")
    field.clear()
    field.send_keys("[[90, 10], [20, 80]]")
    press(browser, "Set reference")
    until(browser, "return document.querySelector('.notice').textContent === 'The reference is set.'")
    assert server.detail("fraud")["config"]["reference"] == [[90, 10], [20, 80]]


def test_a_test_alert_arrives_and_the_page_says_so(server, seen, receiver):
    server.put("fraud", alerts={"channels": [receiver.url]})
    browser = seen(server, "fraud")
    press(browser, "Send test alert")
    until(browser, "return document.querySelector('.notice').textContent === arguments[0]", ARRIVED, seconds=20)
    assert len(receiver.requests) == 1


TOKEN = "dialog[open] [type=password]"
ARRIVED = "The test alert arrived at 1 channel."


def test_a_token_is_asked_for_kept_for_the_tab_and_never_put_in_an_address(tmp_path, browser):
    from fourrates.serve.tokens import Tokens

    (tmp_path / "data").mkdir()
    reading, _ = Tokens(tmp_path / "data").create("board", ["read"])
    server = Server(tmp_path / "data", "--require-token")
    try:
        admin, _ = Tokens(tmp_path / "data").create("person", ["admin"])
        time.sleep(1.1)  # a running server takes a new token within a second
        server.service.token = admin
        server.put("fraud")
        server.send("fraud", *sound(100))
        browser.get(server.service.address + "/#/monitor/fraud")
        browser.get_log("browser")
        until(browser, f"return document.querySelector('{TOKEN}')")
        field = browser.find_element(By.CSS_SELECTOR, TOKEN)
        field.send_keys("frt_nonsense", Keys.ENTER)
        until(browser, "return document.querySelector('dialog[open]')?.textContent.includes('did not accept')")
        browser.find_element(By.CSS_SELECTOR, TOKEN).send_keys(reading, Keys.ENTER)
        until(browser, "return document.querySelector('h1 em').textContent === 'Too early to say'")
        until(browser, "return document.querySelector('.connection').textContent === 'Live'")
        assert not browser.find_elements(By.CSS_SELECTOR, "dialog")
        asked = browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name).join()")
        assert "api/stream" in asked
        assert reading not in asked + browser.current_url
        press(browser, "Silence alerts")
        press(browser, "Silence")  # a token to look cannot change anything, and the page says why
        until(browser, "return document.querySelector('.notice').textContent.startsWith('Not silenced: ')")
        browser.refresh()
        until(browser, "return document.querySelector('h1 em').textContent === 'Too early to say'")
        press(browser, "Forget the token")
        until(browser, f"return document.querySelector('{TOKEN}')")
    finally:
        browser.execute_script("sessionStorage.clear()")
        browser.get("about:blank")
        server.close()


def test_dragging_zooms_all_charts_and_a_finding_shows_its_surroundings(lively, seen):
    browser = seen(lively, "card fraud")
    until(browser, "return document.querySelectorAll('.drift').length > 0")
    ranges = "return fourrates.view().charts.charts.map((c) => [c.plot.scales.x.min, c.plot.scales.x.max])"
    whole = browser.execute_script(ranges)[0]
    over = browser.find_element(By.CSS_SELECTOR, ".chart .u-over")
    moved = ActionChains(browser).move_to_element_with_offset(over, -100, 0).click_and_hold().move_by_offset(150, 0)
    moved.release().perform()
    zoomed = browser.execute_script(ranges)
    assert len({tuple(one) for one in zoomed}) == 1
    assert whole[0] < zoomed[0][0] < zoomed[0][1] < whole[1]
    ActionChains(browser).double_click(over).perform()
    assert browser.execute_script(ranges)[0] == whole
    # By events: how far apart they are in time depends on how busy the machine was when they were sent.
    browser.execute_script("fourrates.view().charts.by('event')")
    browser.execute_script("document.querySelector('.drift:last-child details').open = true")
    press(browser, "Show in the charts")
    until(browser, "return fourrates.view().charts.sight")


def test_the_ids_to_retrain_on_are_downloaded(lively, seen):
    browser = seen(lively, "card fraud")
    press(browser, "Download training IDs")
    until(browser, "return / ids since the drift started\\.$/.test(document.querySelector('.notice').textContent)")
