"""The main stream changes an operand after the product has read the operand."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
a, b = xp.ones((40, 40)), xp.ones((40, 40))
tcuda.synchronize()

with tcuda.stream(side):
    c = a @ b
main.wait_stream(side)
a.fill(0)

tcuda.synchronize()
assert float(c.sum()) == 64_000
