"""Streams and models for the tests of the loops."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Centroids(ClassifierMixin, BaseEstimator):
    """The class whose mean is nearest, without the checks that make a single prediction slow."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        distances = np.square(X[:, None, :] - self.means_).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


def restless(size=1500, seed=0, classes=2):
    """Examples whose concept changes every 300, a tenth of the labels being wrong."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 3))
    concept = np.arange(size) // 300 % 3
    y = np.clip(np.floor(X[np.arange(size), concept] + classes / 2), 0, classes - 1).astype(int)
    return X, np.where(random.random(size) < 0.1, random.integers(0, classes, size), y)


def flipping(size=2000, change=1000, seed=3):
    """The sign of the first feature, and from `change` on its opposite."""
    X = np.random.default_rng(seed).normal(size=(size, 2))
    return X, ((X[:, 0] > 0) != (np.arange(size) >= change)).astype(int)


def noisy(size=6000, seed=0, noise=0.25):
    """One concept throughout, a quarter of the labels being wrong."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 3))
    return X, ((X[:, 0] > 0.3) != (random.random(size) < noise)).astype(int)


def in_pieces(loop, X, y, cuts):
    ends = [*sorted(cuts), len(y)]
    return np.concatenate([loop.run(X[a:b], y[a:b]) for a, b in zip([0, *ends], ends, strict=False)])
