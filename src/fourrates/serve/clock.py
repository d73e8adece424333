"""The time of day for a server, without the leaps of a clock that is set wrong and then right again.

Predictions waiting for labels expire by this time, and alerts repeat by it. A moment in the wrong year would end all
waits and silence alerts until that year. So a jump, ahead or back, is ignored for an hour, during which time continues
from before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("fourrates.serve")
LEAP = 60.0  # seconds by which a clock may be set at once
HELD = 3_600.0  # seconds after which a leap is believed


def elapsed() -> float:
    """Seconds that have passed, also while the machine was suspended if the system counts them."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Clock:
    """The time of day, in seconds since 1970.

    Examples
    --------
    >>> day, passed = [1_000_000.0], [0.0]
    >>> clock = Clock(lambda: day[0], lambda: passed[0])
    >>> day[0], passed[0] = 31_000_000.0, 5.0
    >>> clock.now()
    1000005.0
    >>> passed[0] = 3_700.0
    >>> clock.now()
    31000000.0
    """

    def __init__(self, day: Callable[[], float] = lambda: time.time(), passed: Callable[[], float] = elapsed) -> None:
        self._day, self._passed = day, passed
        self._offset = day() - passed()
        self._held_since: float | None = None

    def now(self) -> float:
        """The time, without a leap that may be an error."""
        day, passed = self._day(), self._passed()
        leap = day - passed - self._offset
        if abs(leap) > LEAP:
            if self._held_since is None:
                self._held_since = passed
                text = "the clock leapt by %+.0f s; not believed for %.0f s, in case it is set right again"
                log.warning(text, leap, HELD)
            if passed - self._held_since < HELD:
                return passed + self._offset
            log.warning("the clock is still off by %+.0f s; from now on it is believed", leap)
        self._offset, self._held_since = day - passed, None
        return day
