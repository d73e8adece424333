"""river: a model that learns event by event, inside river's own evaluation, and starts anew when a rate moves.

    pip install 'fourrates[river]'
    python examples/river_stream.py

While the detector warns, a successor learns in the background; at the alarm it takes over.
"""

from river import datasets, evaluate, metrics, naive_bayes

import fourrates as fr
from fourrates.adapters.river import DriftDetector, DriftRetrainingClassifier

# %% Web sites, and the same again with what was phishing turned into what was not
sites = [*datasets.Phishing(), *((x, not y) for x, y in datasets.Phishing())]

# %% Predict, compare, learn: a model that learns gets better, which is no alarm, so watch for falls alone
detector = DriftDetector(fr.LFR(detect=1e-6, sides="down"))
model = DriftRetrainingClassifier(naive_bayes.GaussianNB(), detector)
watched = evaluate.progressive_val_score(sites, model, metrics.Accuracy())
alone = evaluate.progressive_val_score(sites, naive_bayes.GaussianNB(), metrics.Accuracy())
for drift in model.drifts:
    print(drift)
print(f"{len(sites):,} sites; watched: {watched}; alone: {alone}")
