"""Streams of pairs with known changes."""

from fourrates.streams.scenarios import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "Scenario"]
