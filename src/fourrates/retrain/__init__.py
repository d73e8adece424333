"""Wrap a classifier so it retrains itself when that helps.

Use :class:`ChampionRetrainer`, a vote of several models weighted by their accuracy on unseen labels. :class:`Retrainer`
is the paper's loop around any scikit-learn or river classifier. Both read one example at a time or batches, with labels
at once or late, and give predictions, drifts and the :class:`ServingPeriod` of every model.
"""

from fourrates.retrain.champion import ChampionRetrainer, Expert
from fourrates.retrain.retrainer import Retrainer
from fourrates.retrain.serving import Decision, FitError, ServingPeriod

__all__ = [
    "ChampionRetrainer",
    "Decision",
    "Expert",
    "FitError",
    "Retrainer",
    "ServingPeriod",
]
