"""Adapters to drift detectors and estimators of other libraries.

- :mod:`fourrates.adapters.river`, a river drift detector, and a classifier that retrains on drift.
- :mod:`fourrates.adapters.sklearn`, a meta-estimator that watches a classifier and refits it.

Each is imported by name and needs its library.
"""
