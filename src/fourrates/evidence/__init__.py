"""Evidence for a change: what FourRates looks for, since when, and with which precisions."""
