"""`fourrates watch` in tmux: the rates drawn live, a drift shown as it happens, a summary after Ctrl-C."""

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
    screen = wait_for(terminal, "tpr ↓")
    assert "1 drift" in screen
    assert "tpr ↓ 1.000 → 0.000, since about event 1,000" in screen
    assert "▼ tpr fell, by how much is not yet known" in screen  # what is open is on top
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "watch.txt").write_text(terminal.screen(colours=True))
    terminal.press("C-c")
    screen = wait_for(terminal, "1,028 events in")
    assert "drift at 1,0" in screen
    assert "Traceback" not in screen


def test_the_view_keeps_up_with_a_fast_pipe(terminal, data):
    terminal.start(f"cat {data} | {sys.executable} -m fourrates watch - -d 'LFR(detect=1e-6)' --no-warnings")
    screen = wait_for(terminal, "tpr up", 60)
    assert "200,000 events in" in screen
    assert "tpr down" in screen
