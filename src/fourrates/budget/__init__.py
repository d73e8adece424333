"""Run lengths and delays: what to expect of a detector before it runs."""
