"""The solver on the side stream does not wait for the write of the right-hand side."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix, rhs = 2 * xp.eye(8), xp.zeros(8)
tcuda.synchronize()

rhs.fill(6)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    solution = xp.linalg.solve(matrix, rhs)  # second

tcuda.synchronize()
assert abs(float(solution.sum()) - 24) < 1e-9
