"""The side stream reads the transposed matrix after the write of the matrix."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix = xp.zeros((50, 20))
transposed = matrix.T
tcuda.synchronize()

matrix.fill(3)
side.wait_stream(main)
with tcuda.stream(side):
    sums = transposed.sum(axis=1)

tcuda.synchronize()
assert sums.tolist() == [150] * 20
