"""Evidence for a change, with its alternatives, its start, and the precisions that moved."""
