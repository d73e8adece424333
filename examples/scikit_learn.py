"""scikit-learn: predict, learn the truth later, and replace the classifier when it drifts.

    pip install scikit-learn
    python examples/scikit_learn.py

A classifier is trained on the first part of a stream. From event 6,000 on the world changes: what made a customer leave
no longer does. The drift tells which examples the next classifier should learn from.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

import fourrates as fr
from fourrates.retrain import Retrainer

# %% A stream whose concept changes at 6,000
random = np.random.default_rng(5)
X = random.normal(size=(10_000, 4))
weights = np.where(np.arange(10_000)[:, None] < 6_000, [2.0, -1.0, 0.0, 0.0], [0.0, -1.0, 2.0, 0.0])
y = (np.sum(X * weights, axis=1) + random.logistic(size=10_000) * 0.5 > 1.5).astype(int)

# %% Train on the past, predict, and give the labels when they come: here 500 at a time, one batch late
retrainer = Retrainer(LogisticRegression(), fr.LFR(detect=1e-6), min_examples=500).fit(X[:2_000], y[:2_000])
served = []
for first in range(2_000, 10_000, 500):
    batch = np.arange(first, first + 500)
    served.append(retrainer.predict(X[batch], ids=batch))
    if first > 2_000:
        before = batch - 500
        for drift in retrainer.observe(before, y[before]):
            print(f"{drift}\n  the new concept: from event {2_000 + drift.since:,} on")  # labels count from 2,000

# %% What became of each model
for life in retrainer.models:
    print(life)
alone = LogisticRegression().fit(X[:2_000], y[:2_000])
print(f"accuracy on the last 2,000 events, old model: {alone.score(X[8_000:], y[8_000:]):.3f}")
print(f"accuracy on the last 2,000 events, as served: {np.mean(np.concatenate(served)[-2_000:] == y[8_000:]):.3f}")
