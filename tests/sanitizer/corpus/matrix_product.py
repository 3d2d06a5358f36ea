"""The main stream changes an operand while the product may still read the operand."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
a, b = xp.ones((40, 40)), xp.ones((40, 40))
tcuda.synchronize()

with tcuda.stream(side):
    c = a @ b  # first
# missing: main.wait_stream(side)
a.fill(0)  # second

tcuda.synchronize()
assert float(c.sum()) == 64_000
