"""How far long work has come: told on a terminal, and nowhere else."""

import io

import pytest

from fourrates.cli import output


class Screen(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_one_line_that_is_gone_at_the_end_and_elsewhere_nothing_is_told(monkeypatch, terminal):
    screen = Screen(terminal)
    monkeypatch.setattr(output.sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress() as report:
        report("1,000,000 events read, 1 drift so far")
    written = screen.getvalue()
    assert ("1,000,000 events read, 1 drift so far" in written) == terminal
    assert written.endswith("\x1b[2K") == terminal  # the line is cleared
