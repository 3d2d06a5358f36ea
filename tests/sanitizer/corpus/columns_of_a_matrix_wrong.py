"""Two streams write columns of a matrix, and both write column 4."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix = xp.zeros((100, 10))
tcuda.synchronize()

matrix[:, :5] = 1  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    matrix[:, 4:] = 2  # second

tcuda.synchronize()
assert float(matrix.sum()) == 1600
