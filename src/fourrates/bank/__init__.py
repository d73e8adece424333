"""Many keyed streams, one record each, with the bank, its keys, its settings, and the streams it holds."""

from fourrates.bank.bank import Bank

__all__ = ["Bank"]
