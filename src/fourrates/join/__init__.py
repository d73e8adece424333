"""Predictions and late labels by id, with the join, its ids and times, and the pairs it gives."""

from fourrates.join.join import LabelJoin

__all__ = ["LabelJoin"]
