"""Detections against the truth, run lengths, and how well a classifier does along a stream.

`score` compares the drifts of one stream with its changes and `summarise` adds up many scores. `run_length` is for
streams that do not change. `prequential` follows accuracy, F1 and G-mean event by event.
"""

from fourrates.evaluate.prequential import Prequential, Totals, prequential, totals
from fourrates.evaluate.run_length import RunLength, run_length
from fourrates.evaluate.scores import Score, Summary, score, summarise

__all__ = [
    "Prequential",
    "RunLength",
    "Score",
    "Summary",
    "Totals",
    "prequential",
    "run_length",
    "score",
    "summarise",
    "totals",
]
