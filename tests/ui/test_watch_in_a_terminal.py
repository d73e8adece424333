"""`fourrates watch` in tmux: the rates drawn live, a drift shown as it happens, a summary after Ctrl-C."""

import re
import sys
import time

import pytest

from .conftest import PICTURES


def wait_for(terminal, text, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        screen = terminal.screen()
        if text in screen:
            return screen
        time.sleep(0.1)
    raise AssertionError(f"{text!r} did not come up in\n{terminal.screen()}")


@pytest.mark.parametrize("budget", ["", " --budget 20000"])
def test_the_rates_are_shown_live_and_a_drift_as_it_happens(terminal, tmp_path, budget):
    log = tmp_path / "log.csv"
    log.write_text("y_true,y_pred\n" + "1,1\n0,0\n" * 500)
    terminal.start(f"{sys.executable} -m fourrates watch {log}{budget}")
    screen = wait_for(terminal, "1,000 events")
    for rate in ("tnr", "tpr", "npv", "ppv"):
        assert rate in screen
    assert "●" in screen
    assert "0 drifts" in screen
    with log.open("a") as file:
        file.write("1,0\n" * 25 + "1,1\n" * 3)
    screen = wait_for(terminal, "found at event")
    assert "1 drift" in screen
    assert "Since about event 1,000, found at event 1,0" in " ".join(screen.split())
    assert re.search(r"▼ tpr fell(, by how much is not yet known| to between 0\.\d+ and 0\.\d+)", screen)  # on top
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "watch.txt").write_text(terminal.screen(colours=True))
    terminal.press("C-c")
    screen = wait_for(terminal, "1,028 events in")
    assert "found at event 1,0" in screen
    assert "Traceback" not in screen


@pytest.mark.parametrize("detector", ["FourRates", "LFR(detect=1e-6)"])
def test_at_80_columns_no_answer_is_cut_and_the_verdict_comes_first(terminal, data, detector):
    terminal.start(f"clear; {sys.executable} -m fourrates detect {data} -d '{detector}' 2>/dev/null; echo ended", 80)
    lines = wait_for(terminal, "\nended\n").rstrip().splitlines()
    assert lines[0].startswith("Stable: tnr 0.9" if detector == "FourRates" else "2 drifts in 200,000 events")
    assert "…" not in "".join(lines)
    rows = [line for line in lines if line.startswith(" 2026-")]
    assert len(rows) == (6 if detector == "FourRates" else 2)
    for row in rows:
        assert re.search(r"(tpr|tnr) [↓↑]  0\.\d{3} → 0\.\d{3}", row), row
    for line in lines:
        assert not line.startswith(("%", "of ", "0.")), line  # a number torn from its words


def test_the_view_keeps_up_with_a_fast_pipe(terminal, data):
    terminal.start(f"cat {data} | {sys.executable} -m fourrates watch - -d 'LFR(detect=1e-6)' --no-warnings")
    screen = wait_for(terminal, "200,000 events in", 60)
    assert "tpr (positives caught) rose" in screen
    assert "tpr (positives caught) fell" in screen
