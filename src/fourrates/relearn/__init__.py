"""Wrap a classifier so it retrains itself when that helps.

:class:`Relearner` is the paper's loop around any scikit-learn or river classifier, with HLFR's second layer if wanted.
:class:`ChampionRelearner` is the one to use: several models vote, each weighted by its accuracy on unseen labels.
Both take streams one example at a time or in batches, labels at once or late, and give predictions, drifts, and the
:class:`Life` of every model.
"""

from fourrates.relearn.champion import ChampionRelearner, Expert
from fourrates.relearn.decision import Decision
from fourrates.relearn.life import FitError, Life
from fourrates.relearn.permutation import PermutationTest
from fourrates.relearn.rate_test import RateTest
from fourrates.relearn.relearner import Relearner
from fourrates.relearn.second_layer import Verdict
from fourrates.relearn.sequential_test import SequentialTest

__all__ = [
    "ChampionRelearner",
    "Decision",
    "Expert",
    "FitError",
    "Life",
    "PermutationTest",
    "RateTest",
    "Relearner",
    "SequentialTest",
    "Verdict",
]
