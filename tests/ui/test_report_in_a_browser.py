"""The report in Chromium: drawn without an error, read by mouse and keyboard, light and dark, small and printed."""

import base64

import pytest

from .conftest import PICTURES

selenium = pytest.importorskip("selenium", reason="selenium is not installed; make test-ui installs it")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

INK = """
const canvas = arguments[0], context = canvas.getContext('2d');
const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
return new Set(pixels).size;
"""


def x_range(browser):
    return browser.execute_script("const x = fourrates.charts()[0].scales.x; return [x.min, x.max]")


def picture(browser, name):
    height = min(4000, browser.execute_script("return document.documentElement.scrollHeight"))
    width = browser.execute_script("return innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    (PICTURES / f"{name}.png").write_bytes(base64.b64decode(shot))


def errors(browser):
    return [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
def test_four_charts_are_drawn_without_an_error(opened, scheme, width):
    browser = opened(width, scheme=scheme)
    canvases = browser.find_elements(By.CSS_SELECTOR, ".chart canvas")
    assert len(canvases) == 4
    for canvas in canvases:
        assert browser.execute_script(INK, canvas) > 20  # different colours: curve, bands, grid, text and their edges
    assert errors(browser) == []
    picture(browser, f"report-{scheme}-{width}")


def test_dark_is_dark_and_light_is_light(opened):
    def brightness(scheme):
        browser = opened(scheme=scheme)
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(",")[:3])

    assert brightness("light") > 700
    assert brightness("dark") < 120


def test_the_page_follows_when_the_scheme_changes(opened):
    browser = opened(scheme="light")
    canvas = browser.find_element(By.CSS_SELECTOR, ".chart canvas")
    before = browser.execute_script("return arguments[0].toDataURL()", canvas)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    after = browser.execute_async_script(
        "const done = arguments[1], canvas = arguments[0]; setTimeout(() => done(canvas.toDataURL()), 300)", canvas
    )
    assert before != after


def test_nothing_is_wider_than_a_phone(opened):
    browser = opened(width=390, height=844)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_hovering_tells_the_values(opened):
    browser = opened()
    over = browser.find_element(By.CSS_SELECTOR, ".chart .u-over")
    ActionChains(browser).move_to_element(over).perform()
    told = browser.find_element(By.CSS_SELECTOR, ".chart .readout").text
    assert told.startswith("event ")
    assert "2026-" in told
    assert "tpr 0." in told
    assert "detect 0." in told


def test_dragging_zooms_all_charts_and_a_double_click_shows_all(opened):
    browser = opened()
    over = browser.find_element(By.CSS_SELECTOR, ".chart .u-over")
    whole = x_range(browser)
    ActionChains(browser).move_to_element_with_offset(over, -100, 0).click_and_hold().move_by_offset(
        150, 0
    ).release().perform()
    low, high = x_range(browser)
    assert whole[0] < low < high < whole[1]
    ranges = browser.execute_script("return fourrates.charts().map(c => c.scales.x.min)")
    assert len(set(ranges)) == 1
    ActionChains(browser).double_click(over).perform()
    assert x_range(browser) == whole


def test_the_button_of_a_drift_shows_its_surroundings_in_full(opened):
    browser = opened()
    button = browser.find_element(By.CSS_SELECTOR, "button[data-zoom]")
    _, since, at = map(int, button.get_attribute("data-zoom").split())
    button.click()
    low, high = x_range(browser)
    assert low < since < at < high
    assert high - low < 20 * (at - since)
    points = "return fourrates.charts()[0].data[0].filter((e) => e >= arguments[0] && e <= arguments[1]).length"
    assert browser.execute_script(points, since, at) >= 10
    picture(browser, "report-zoomed")


def test_the_charts_are_read_and_zoomed_with_the_keyboard(opened):
    browser = opened()
    for _ in range(20):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if "chart" in (browser.switch_to.active_element.get_attribute("class") or ""):
            break
    chart = browser.switch_to.active_element
    assert "chart" in chart.get_attribute("class")
    assert "Arrow keys" in chart.get_attribute("aria-label")
    whole = x_range(browser)
    chart.send_keys("+")
    low, high = x_range(browser)
    assert high - low == pytest.approx((whole[1] - whole[0]) / 2, rel=0.01)
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    first = chart.find_element(By.CSS_SELECTOR, ".readout").text
    chart.send_keys(Keys.ARROW_RIGHT)
    second = chart.find_element(By.CSS_SELECTOR, ".readout").text
    assert first.startswith("event ")
    assert second.startswith("event ")
    assert first != second
    chart.send_keys("0")
    assert x_range(browser) == whole


def test_print_leaves_out_the_controls(opened):
    browser = opened(media="print", scheme="dark")
    shown = "return [...document.querySelectorAll('button')].filter(b => getComputedStyle(b).display !== 'none').length"
    assert browser.execute_script(shown) == 0
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    (PICTURES / "report.pdf").write_bytes(base64.b64decode(pdf))
    assert len(pdf) > 20_000


def test_the_words_are_there_without_script(opened, browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened()
        text = browser.find_element(By.TAG_NAME, "body").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "Drifted: tpr rose from 0.2" in text  # LFR does not tell a recovery from a drift
    assert "tpr ↓ fell from 0.7" in text
    assert "The charts need JavaScript" in text
