"""The side stream reads the transposed matrix, which is the same memory as the matrix."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix = xp.zeros((50, 20))
transposed = matrix.T
tcuda.synchronize()

matrix.fill(3)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    sums = transposed.sum(axis=1)  # second

tcuda.synchronize()
assert sums.tolist() == [150] * 20
