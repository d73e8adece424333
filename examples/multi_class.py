"""More than two classes: recall and precision of each, by name.

    python examples/multi_class.py

A classifier of animals starts to take cats for dogs. Its accuracy falls by four points; the recall of cats says it all.
"""

import numpy as np

import fourrates as fr

# %% Cats are a tenth of the stream; from event 5,000 on half of them are called dogs
random = np.random.default_rng(11)
animals = np.array(["cat", "cow", "dog"])
truth = random.choice(3, 10_000, p=[0.1, 0.5, 0.4])
wrong = random.random(10_000) < 0.1
pred = np.where(wrong, (truth + random.integers(1, 3, 10_000)) % 3, truth)
mistaken = (np.arange(10_000) >= 5_000) & (truth == 0) & (random.random(10_000) < 0.5)
pred[mistaken] = 2

# %% Six rates, each within its bounds
detector = fr.LFR(labels=animals.tolist(), detect=1e-6)
for drift in detector.update_many(animals[truth], animals[pred]):
    print(drift)
for name, rate in detector.rates.items():
    print(f"{name:<15} {rate.statistic:.3f} within {rate.detect.lower:.3f} .. {rate.detect.upper:.3f}, n {rate.n:,}")
