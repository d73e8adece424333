"""Streams with known changes: pairs of true and predicted labels, and examples to train on."""

from fourrates.streams.datasets import DATASETS, DatasetError, load
from fourrates.streams.examples import Examples, permuted
from fourrates.streams.fraud import Transactions, fraud
from fourrates.streams.hyperplane import hyperplane
from fourrates.streams.scenarios import SCENARIOS, Scenario
from fourrates.streams.sea import sea

__all__ = [
    "DATASETS",
    "SCENARIOS",
    "DatasetError",
    "Examples",
    "Scenario",
    "Transactions",
    "fraud",
    "hyperplane",
    "load",
    "permuted",
    "sea",
]
