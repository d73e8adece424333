"""How far long work has come: told on a terminal, and nowhere else."""

import io

import pytest

from fourrates.cli import ticker


class Screen(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.fixture
def shown(monkeypatch):
    """What a ticker writes in five seconds of work, with a tick every tenth of a second."""

    def run(terminal, seconds=5.0):
        clock, screen = [0.0], Screen(terminal)
        monkeypatch.setattr(ticker.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(ticker.sys, "stderr", screen)
        with ticker.Ticker() as made:
            while clock[0] < seconds:
                clock[0] += 0.1
                made.tick(round(clock[0] * 1_000_000), "1 drift")
        return screen.getvalue()

    return run


def test_a_terminal_shows_one_line_that_is_rewritten_and_gone_at_the_end(shown):
    written = shown(terminal=True)
    lines = written.split(ticker.CLEAR)
    assert lines[0] == lines[-1] == ""
    assert "\n" not in written
    assert lines[1].endswith("00,000 events read, 1,000,000 a second, 1 drift so far")
    assert 8 <= len(lines[1:-1]) <= 9  # from the first second on, each half second


def test_elsewhere_and_of_short_work_nothing_is_told(shown):
    assert shown(terminal=False) == ""
    assert shown(terminal=True, seconds=0.8) == ""
