#!/usr/bin/env bash
# A pipe: predictions as they are made, alarms as they come.
#
#     examples/pipe.sh
#
# Anything that prints CSV or JSON lines can stand in the place of `source`: tail -f, a queue's console client, a service's log.
set -euo pipefail

source() {
    python - <<'PYTHON'
import json

from fourrates.streams import fraud

stream = fraud(seed=2, length=50_000)
for time, label, prediction in zip(stream.times, stream.y_true.tolist(), stream.y_pred.tolist(), strict=True):
    print(json.dumps({"timestamp": str(time), "label": label, "prediction": prediction}))
PYTHON
}

# Drifts alone, one JSON object a line; a command for each of them.
source | fourrates watch - --detector 'LFR(detect=1e-6)' --no-warnings --exec 'echo "page somebody: $FOURRATES_RATES" >&2'
