"""Many models in one file: a detector for each, and the one that drifted found among them.

python examples/many_models.py
fourrates detect many_models.csv --by model --detector 'LFR(detect=1e-7)' --report many_models.html
"""

import csv

import numpy as np

import fourrates as fr
from fourrates import io
from fourrates.watch import Run

# %% Fifty models, interleaved; number 17 loses its tpr half way
random = np.random.default_rng(3)
size = 200_000
model = random.integers(0, 50, size)
truth = (random.random(size) < 0.3).astype(int)
share = np.where((model == 17) & (truth == 1) & (np.arange(size) > size // 2), 0.4, 0.9)
pred = np.where(random.random(size) < share, truth, 1 - truth)
with open("many_models.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["model", "label", "prediction"])
    writer.writerows(zip((f"model-{m}" for m in model), truth, pred, strict=True))

# %% What `fourrates detect --by model` does
run = Run(fr.LFR(detect=1e-7))
events = io.read("many_models.csv", columns=io.Columns(by="model"), on_message=print)
for batch in events:
    for found in run.take(batch, events.keys):
        print(f"{found.stream}: {found.finding}")
print(f"{run.events:,} events of {len(run.streams)} models")
