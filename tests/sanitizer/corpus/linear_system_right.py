"""The solver reads the right-hand side after the write of it."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
matrix, rhs = 2 * xp.eye(8), xp.zeros(8)
tcuda.synchronize()

rhs.fill(6)
side.wait_stream(main)
with tcuda.stream(side):
    solution = xp.linalg.solve(matrix, rhs)

tcuda.synchronize()
assert abs(float(solution.sum()) - 24) < 1e-9
