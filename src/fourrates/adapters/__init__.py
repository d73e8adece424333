"""fourrates where other libraries expect a part of their own.

- :mod:`fourrates.adapters.river`: a drift detector of river's, and a classifier that retrains when it speaks.
- :mod:`fourrates.adapters.sklearn`: a meta-estimator that watches a classifier and refits it.

Each is imported by its own name, and needs the library it is for.
"""
