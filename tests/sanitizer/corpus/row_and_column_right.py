"""One stream writes a row, and the other stream writes a column below that row."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix = xp.zeros((100, 100))
column = matrix[3:, 5]
tcuda.synchronize()

matrix[2] = 1
with tcuda.stream(side):
    column[...] = 2

tcuda.synchronize()
assert bool((column == 2).all())
