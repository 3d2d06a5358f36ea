"""Numbers as a GPU computes them: casts, arithmetic, errors of floating point, and the counts of operations."""
