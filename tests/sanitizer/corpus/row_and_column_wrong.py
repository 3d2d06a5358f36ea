"""One stream writes a row and the other stream a column, which have one element in common."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix = xp.zeros((100, 100))
column = matrix[:, 5]
tcuda.synchronize()

matrix[2] = 1  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    column[...] = 2  # second

tcuda.synchronize()
assert bool((column == 2).all())
