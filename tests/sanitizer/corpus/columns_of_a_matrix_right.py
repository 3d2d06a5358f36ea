"""Two streams write different columns of a matrix."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix = xp.zeros((100, 10))
tcuda.synchronize()

matrix[:, :4] = 1
with tcuda.stream(side):
    matrix[:, 4:] = 2

tcuda.synchronize()
assert float(matrix.sum()) == 1600
