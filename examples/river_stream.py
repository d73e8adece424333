"""river: a model that learns event by event, and a detector beside it.

    pip install river
    python examples/river_stream.py

When a rate moves, the model is replaced by a new one; the events between warning and alarm are its first lessons.
"""

from river import datasets, linear_model, preprocessing

import fourrates as fr


def new_model():
    """A model that has learnt nothing."""
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


# %% SEA: the sum of two features against a threshold, which is another one from event 4,000 on
concepts = [datasets.synth.SEA(variant=variant, seed=variant).take(4_000) for variant in (0, 2)]

# %% Predict, compare, learn
model = new_model()
detector = fr.LFR(decay=0.98, detect=1e-6, sides="down")  # a model that learns gets better, which is no alarm
past, right = [], 0
for concept in concepts:
    for x, y in concept:
        guess = bool(model.predict_one(x))
        drift = detector.update(bool(y), guess)
        model.learn_one(x, bool(y))
        past.append((x, bool(y)))
        right += guess == y
        if drift is not None:
            print(drift)
            model = new_model()
            for features, label in past[drift.since : drift.at + 1]:
                model.learn_one(features, label)
print(f"{len(past):,} events, accuracy {right / len(past):.3f}")
