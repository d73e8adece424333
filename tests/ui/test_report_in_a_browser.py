"""The report in Chromium: in every state, at both sizes, light and dark; read by mouse, keyboard and any eye."""

import base64
import itertools
import re

import numpy as np
import pytest

import fourrates as fr
from fourrates.streams import fraud

from .conftest import PICTURES

selenium = pytest.importorskip("selenium", reason="selenium is not installed; make test-ui installs it")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

INK = """
const canvas = arguments[0], context = canvas.getContext('2d');
const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
return new Set(pixels).size;
"""
SIZES = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]
# Text against what is behind it, and the borders of controls: every one with too little contrast.
CONTRAST = r"""
const rgba = (text) => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
const light = (c) => {
  const f = c.map((v) => (v / 255 <= .04045 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4));
  return .2126 * f[0] + .7152 * f[1] + .0722 * f[2];
};
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
function behind(element) {
  const layers = [];
  for (let one = element; one; one = one.parentElement) layers.unshift(rgba(getComputedStyle(one).backgroundColor));
  return layers.reduce((below, top) => over(top, below), [255, 255, 255]);
}
const found = [];
for (const element of document.querySelectorAll('body *')) {
  if (!element.checkVisibility() || element.closest('script, .uplot')) continue;
  const style = getComputedStyle(element), back = behind(element);
  if ([...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) {
    const colour = rgba(element instanceof SVGElement ? style.fill : style.color);
    const seen = ratio(over(colour, back), back);
    if (seen < 4.5) found.push(['text', seen, element.outerHTML.slice(0, 90)]);
  }
  if (element.matches('button, select')) {
    const edge = over(rgba(style.borderTopColor), behind(element.parentElement));
    if (ratio(edge, behind(element.parentElement)) < 3) found.push(['border', element.outerHTML.slice(0, 90)]);
  }
}
return found;
"""
# Whatever leaves the window, or has more text than it shows; tables may scroll.
CUT = """
const boxed = (e) => !e.matches('select, .unseen') && e.clientWidth && getComputedStyle(e).display !== 'inline';
return [...document.querySelectorAll('body *')]
  .filter((e) => e.checkVisibility() && !e.closest('.scroll, .uplot, svg, script'))
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 || (boxed(e) && e.scrollWidth > e.clientWidth + 1))
  .map((e) => e.outerHTML.slice(0, 90));
"""


def picture(browser, name):
    height = min(4000, browser.execute_script("return document.documentElement.scrollHeight"))
    width = browser.execute_script("return innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    (PICTURES / f"{name}.png").write_bytes(base64.b64decode(shot))


def errors(browser):
    return [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]


def timed(size, seconds=12):
    return np.datetime64("2026-02-01", "s") + np.arange(size) * seconds


def six_classes():
    """Twelve segments; in fr/web refunds are taken for billing, in de/shop billing is found less often."""
    random, size = np.random.default_rng(3), 240_000
    segment = random.integers(0, 12, size)
    truth = random.choice(6, size, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    right, late = np.full(size, 0.88), np.arange(size) > 150_000
    right[late & (segment == 9) & (truth == 3)] = 0.45
    right[late & (segment == 2) & (truth == 0)] = 0.72
    pred = np.where(random.random(size) < right, truth, (truth + random.integers(1, 6, size)) % 6)
    pred[late & (segment == 9) & (truth == 3) & (pred != truth)] = 0
    names = np.array([f"{place}/{kind}" for place in ("de", "en", "fr") for kind in ("app", "web", "shop", "api")])
    labels = np.array(["billing", "bug", "login", "refund", "spam", "other"])
    return {"label": labels[truth], "prediction": labels[pred], "channel": names[segment], "time": timed(size)}


def thousand_segments():
    random, size = np.random.default_rng(5), 400_000
    shop, truth = random.integers(0, 1000, size), random.integers(0, 2, size)
    bad = (np.arange(size) > size // 2) & (shop < 13)
    pred = np.where(random.random(size) < np.where(bad, 0.5, 0.9), truth, 1 - truth)
    names = np.array([f"shop-{number:03d}" for number in range(1000)])
    return {"y_true": truth, "y_pred": pred, "shop": names[shop], "time": timed(size, 5)}


def up_and_down():
    """Down and up again, twenty times: more than forty findings."""
    random, size = np.random.default_rng(7), 200_000
    truth, part = random.integers(0, 2, size), np.arange(size) // 5000
    right = np.where((part % 2 == 1) & (truth == 1), 0.75, 0.92)
    return {"y_true": truth, "y_pred": np.where(random.random(size) < right, truth, 1 - truth), "time": timed(size, 30)}


def transactions(part):
    stream = fraud(seed=5)
    end = {"none": stream.changes[0], "open": stream.changes[1], "demo": 200_000, "young": 1500}[part]
    return {"y_true": stream.y_true[:end], "y_pred": stream.y_pred[:end], "time": stream.times[:end]}


STATES = {
    **{part: lambda part=part: fr.detect(transactions(part)) for part in ("none", "open", "demo", "young")},
    "six": lambda: fr.detect(six_classes(), by="channel"),
    "thousand": lambda: fr.detect(thousand_segments(), by="shop"),
    "forty": lambda: fr.detect(up_and_down(), arl=20_000),
    "three": lambda: fr.detect(([1, 0, 1], [1, 0, 0])),
}
HEADLINES = {
    "none": "No drift: a fall of ",
    "open": "Drifted: tpr fell from 0.758 to 0.269",
    "demo": "Recovered: tpr is back at 0.752",
    "young": "No drift: some rates are not known yet, needs about 189 more positives",
    "six": "Drifted in 2 of 12 segments: most in fr/web: recall of refund fell from 0.887 to 0.4",
    "thousand": "Drifted in 13 of 1,000 segments: most in shop-0",
    "forty": "Drifted: t",
    "three": "Too few rows to say anything: needs about ",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of a state, made once."""
    folder = tmp_path_factory.mktemp("states")

    def path(state):
        page = folder / f"{state}.html"
        if not page.exists():
            STATES[state]().report(page)
        return page

    return path


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_every_state_is_whole_and_legible(opened, made, state, width, scheme):
    browser = opened(width, scheme=scheme, path=made(state))
    assert browser.find_element(By.TAG_NAME, "h1").text.replace("\n", " ").startswith(HEADLINES[state])
    for canvas in browser.find_elements(By.CSS_SELECTOR, ".chart canvas"):
        assert browser.execute_script(INK, canvas) > 20  # different colours: curve, band, grid, text and their edges
    assert bool(browser.find_elements(By.CSS_SELECTOR, "#chart canvas")) == (state != "three")
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(CUT) == []
    assert browser.execute_script(CONTRAST) == []
    assert errors(browser) == []
    picture(browser, f"report-{state}-{scheme}-{width}")


@pytest.mark.parametrize("state", ["demo", "open", "none", "six"])
def test_verdict_and_chart_are_on_the_first_screen(opened, made, state):
    browser = opened(1440, 900, path=made(state))
    for element in ("h1", ".tiles", "#chart canvas"):
        assert browser.find_element(By.CSS_SELECTOR, element).rect["height"] > 20
        below = "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return r.bottom"
        assert browser.execute_script(below, element) <= 900


def test_a_thousand_segments_are_there_within_a_second_and_a_half(opened, made):
    browser = opened(1440, path=made("thousand"))
    took = browser.execute_script("const [n] = performance.getEntriesByType('navigation'); return n.loadEventEnd")
    assert took < 1500


def test_deployments_slices_and_cost_are_shown(opened, tmp_path):
    random, size = np.random.default_rng(2), 60_000
    truth, device = (random.random(size) < 0.3).astype(int), np.array(["ios", "web"])[random.integers(0, 2, size)]
    right = np.where((np.arange(size) > 40_000) & (truth == 1) & (device == "ios"), 0.4, 0.9)
    frame = {"y_true": truth, "y_pred": np.where(random.random(size) < right, truth, 1 - truth), "device": device}
    version = np.where(np.arange(size) < 10_000, "v1", "v2")
    found = fr.detect(
        frame | {"time": timed(size), "version": version}, version="version", time="time", cost={"miss": 20}
    )
    found.report(tmp_path / "report.html", slices=["device"])
    browser = opened(1440, path=tmp_path / "report.html")
    (mark,) = browser.execute_script("return fourrates.stream().deployments")
    assert mark == {"x": timed(size)[10_000].astype(int), "version": "v2"}
    assert "deployed" in browser.find_element(By.CLASS_NAME, "key").text
    assert "Version v2 serves since 2026-02-02 09:20." in browser.find_element(By.CLASS_NAME, "actions").text
    (row,) = browser.find_elements(By.CSS_SELECTOR, "[aria-labelledby=h-slices] tbody tr")
    before, after = (right[(truth == 1) & (device == "ios")][part].mean() for part in (slice(100), slice(-100, None)))
    assert row.text.startswith("device = ios ")
    assert [float(one) for one in row.text.split()[3:5]] == pytest.approx([before, after], abs=0.03)
    assert re.search(r"Costs about\n[\d,]+ a day\n[\d,]+ to [\d,]+", browser.find_element(By.CLASS_NAME, "tiles").text)
    assert browser.execute_script(CUT) == []
    picture(browser, "report-slices-1440")


def test_the_segments_with_most_harm_come_first_and_the_others_are_grey(opened, made):
    browser = opened(1440, path=made("six"))
    rows = browser.find_elements(By.CSS_SELECTOR, "[aria-label=Segments] tbody tr")
    assert [row.find_element(By.TAG_NAME, "th").text for row in rows[:2]] == ["fr/web", "de/shop"]
    shades = [[cell.get_attribute("class") for cell in row.find_elements(By.TAG_NAME, "td")[:6]] for row in rows]
    assert [[shade for shade in row if shade != "none"] for row in shades] == [["down4"], ["down3"]] + [[]] * 10
    assert Select(browser.find_element(By.ID, "stream")).first_selected_option.text == "fr/web"
    assert Select(browser.find_element(By.ID, "rate")).first_selected_option.text == "recall of refund"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drift_and_recovery_are_told_apart_without_green_and_without_colour(opened, made, scheme):
    """Machado's matrix of full deuteranopia, on linear light: far apart in hue; and shape and dash say it again."""
    browser = opened(scheme=scheme, path=made("demo"))
    deuteranopia = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])
    colours = []
    for name in ("b.bad", "b.good"):
        text = browser.execute_script(f"return getComputedStyle(document.querySelector('{name}')).color")
        share = np.array([int(part) for part in text.strip("rgb()").split(",")]) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        colours.append((deuteranopia @ linear).clip(0, 1) ** (1 / 2.2))
    orange, blue = colours
    assert orange[0] - orange[2] > 0.25  # still warm
    assert blue[2] - blue[0] > 0.25  # still cold
    signs = {one.text.split()[0] for one in browser.find_elements(By.CSS_SELECTOR, "summary b.bad")}
    others = {one.text.split()[0] for one in browser.find_elements(By.CSS_SELECTOR, "summary b.good")}
    assert signs == {"▼", "▲"}
    assert others == {"✓"}
    style = "return getComputedStyle(document.querySelector(arguments[0])).borderLeftStyle"
    assert browser.execute_script(style, ".finding.bad") == "solid"
    assert browser.execute_script(style, ".finding.good") == "dashed"


def test_everything_is_reached_by_keyboard(opened, made):
    browser = opened(1440, path=made("six"))
    browser.execute_script("document.getElementById('f1').closest('details').open = true")
    wanted = browser.execute_script(
        "return [...document.querySelectorAll('a, button, select, summary, .chart')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    reached = "window.met ??= new Set(); met.add(document.activeElement); return met.size"
    for _ in range(wanted + 10):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        browser.execute_script(reached)
    missed = "return [...document.querySelectorAll('a, button, select, summary, .chart')]"
    missed += ".filter((e) => e.checkVisibility() && !met.has(e)).map((e) => e.outerHTML.slice(0, 90))"
    assert browser.execute_script(missed) == []


def x_range(browser):
    return browser.execute_script("const x = fourrates.charts()[0].scales.x; return [x.min, x.max]")


def test_the_chart_is_read_and_zoomed_with_the_keyboard_and_shows_more_when_zoomed(opened, made):
    browser = opened(path=made("demo"))
    chart = browser.find_element(By.CSS_SELECTOR, "#chart .chart")
    assert "Arrow keys" in chart.get_attribute("aria-label")
    whole = x_range(browser)
    step = "const [x, y] = fourrates.charts()[0].data, at = x.filter((_, i) => y[i] != null);"
    step += "return (at.at(-1) - at[0]) / (at.length - 1)"
    wide = browser.execute_script(step)
    chart.send_keys("+")
    low, high = x_range(browser)
    assert high - low == pytest.approx((whole[1] - whole[0]) / 2, rel=0.01)
    assert browser.execute_script(step) < 0.8 * wide
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    first = chart.find_element(By.CSS_SELECTOR, ".readout").text
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    second = chart.find_element(By.CSS_SELECTOR, ".readout").text
    assert first.startswith("2026-01-")
    assert "tpr 0." in first
    assert first != second
    chart.send_keys("0")
    assert x_range(browser) == whole


def test_dragging_zooms_all_charts_and_a_double_click_shows_all(opened, made):
    browser = opened(path=made("demo"))
    browser.find_element(By.CSS_SELECTOR, "#others summary").click()
    WebDriverWait(browser, 10).until(lambda b: len(b.find_elements(By.CSS_SELECTOR, ".chart canvas")) > 1)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".chart canvas")) == 4
    over = browser.find_element(By.CSS_SELECTOR, ".chart .u-over")
    whole = x_range(browser)
    ActionChains(browser).move_to_element_with_offset(over, -100, 0).click_and_hold().move_by_offset(
        150, 0
    ).release().perform()
    low, high = x_range(browser)
    assert whole[0] < low < high < whole[1]
    assert len(set(browser.execute_script("return fourrates.charts().map(c => c.scales.x.min)"))) == 1
    ActionChains(browser).double_click(over).perform()
    assert x_range(browser) == whole


def test_ticks_are_at_real_times(opened, made):
    """Midnights, equally far apart, though the events are not."""
    browser = opened(1440, path=made("demo"))
    ticks = browser.execute_script("return fourrates.charts()[0].axes[0]._splits")
    assert {tick % 86_400 for tick in ticks} == {0}
    assert len({second - first for first, second in itertools.pairwise(ticks)}) == 1


def test_a_mark_of_the_timeline_opens_its_card_and_the_card_shows_it_in_the_chart(opened, made):
    browser = opened(1440, path=made("forty"))
    links = browser.find_elements(By.CSS_SELECTOR, ".timeline a")
    assert len(links) >= 40
    link = next(one for one in links if one.find_elements(By.CSS_SELECTOR, "text.bad"))
    name = link.get_dom_attribute("href").removeprefix("#")
    card = browser.find_element(By.ID, name)
    assert not card.find_element(By.TAG_NAME, "dl").is_displayed()
    link.find_element(By.TAG_NAME, "text").click()
    WebDriverWait(browser, 10).until(lambda _: card.find_element(By.TAG_NAME, "dl").is_displayed())
    whole = x_range(browser)
    card.find_element(By.CSS_SELECTOR, "button[data-zoom]").click()
    _, place = map(int, card.find_element(By.CSS_SELECTOR, "button").get_attribute("data-zoom").split())
    found = browser.execute_script("return fourrates.stream().marks[arguments[0]].found", place)
    low, high = x_range(browser)
    assert low < found < high
    assert high - low < 0.5 * (whole[1] - whole[0])


def test_the_command_is_copied(opened, made):
    browser = opened(1440, path=made("open"))
    button = browser.find_element(By.CSS_SELECTOR, "button[data-copy]")
    button.click()
    assert browser.execute_script("return getSelection().toString()").startswith("rows = frame.iloc[")
    WebDriverWait(browser, 10).until(lambda _: button.text == "Copied")


def test_the_page_follows_when_the_scheme_changes(opened, made):
    browser = opened(scheme="light", path=made("demo"))
    canvas = browser.find_element(By.CSS_SELECTOR, ".chart canvas")
    before = browser.execute_script("return arguments[0].toDataURL()", canvas)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    after = browser.execute_async_script(
        "const done = arguments[1], canvas = arguments[0]; setTimeout(() => done(canvas.toDataURL()), 300)", canvas
    )
    assert before != after


def test_print_leaves_out_the_controls(opened, made):
    browser = opened(media="print", scheme="dark", path=made("demo"))
    shown = "return [...document.querySelectorAll('button')].filter(b => getComputedStyle(b).display !== 'none').length"
    assert browser.execute_script(shown) == 0
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    (PICTURES / "report.pdf").write_bytes(base64.b64decode(pdf))
    assert len(pdf) > 20_000


def test_the_words_are_there_without_script(opened, browser, made):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(path=made("demo"))
        text = browser.find_element(By.TAG_NAME, "body").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "Recovered: tpr is back at 0.752" in text
    assert "tpr ↓ 0.758 → 0.262" in text
    assert "The charts need JavaScript" in text
