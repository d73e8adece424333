"""Run lengths and delays, to know what to expect of a detector before it runs."""

from typing import TYPE_CHECKING

from fourrates.lazy import importer

if TYPE_CHECKING:
    from fourrates.budget.decay import best_decay
    from fourrates.budget.delay import expected_delay
    from fourrates.budget.levels import design
    from fourrates.budget.simulation import expected_run_length

__all__ = ["best_decay", "design", "expected_delay", "expected_run_length"]

__getattr__ = importer(
    __name__,
    {"best_decay": "decay", "design": "levels", "expected_delay": "delay", "expected_run_length": "simulation"},
)


def __dir__() -> list[str]:
    return sorted(__all__)
