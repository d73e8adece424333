"""scikit-learn: predict, learn the truth later, and watch the classifier that is in use.

    pip install scikit-learn
    python examples/scikit_learn.py

A classifier is trained on the first part of a stream. From event 6,000 on the world changes: what made a customer leave
no longer does. The drift tells which examples the next classifier should learn from.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

import fourrates as fr

# %% A stream whose concept changes at 6,000
random = np.random.default_rng(5)
X = random.normal(size=(10_000, 4))
weights = np.where(np.arange(10_000)[:, None] < 6_000, [2.0, -1.0, 0.0, 0.0], [0.0, -1.0, 2.0, 0.0])
y = (np.sum(X * weights, axis=1) + random.logistic(size=10_000) * 0.5 > 1.5).astype(int)

# %% Train on the past, predict, and give the detector what came true
model = LogisticRegression().fit(X[:2_000], y[:2_000])
detector = fr.LFR(detect=1e-6)
for first in range(2_000, 10_000, 500):  # labels arrive in batches
    batch = slice(first, first + 500)
    for drift in detector.update_many(y[batch], model.predict(X[batch])):
        window = slice(2_000 + drift.since, 2_000 + drift.at + 1)  # the detector began at 2,000
        print(f"{drift}\n  the new concept: events {window.start:,} to {window.stop - 1:,}")

# %% Learn the new concept, from the drift on
fresh = LogisticRegression().fit(X[window.start : 8_000], y[window.start : 8_000])
for name, one in (("old", model), ("new", fresh)):
    print(f"accuracy on the last 2,000 events, {name} model: {one.score(X[8_000:], y[8_000:]):.3f}")
