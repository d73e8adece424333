"""Streams of true and predicted labels with known changes."""

from fourrates.streams.fraud import Transactions, fraud
from fourrates.streams.scenarios import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "Scenario", "Transactions", "fraud"]
