"""The branch does not wait for its own branch, so the join misses it."""

import tcuda
from tcuda import xp

main, outer, inner = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.ones(1000)
y, z = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(outer):
    xp.multiply(x, 2, out=y)
    inner.wait_stream(outer)
    with tcuda.stream(inner):
        xp.multiply(y, 3, out=z)  # first
    # missing: outer.wait_stream(inner)
    # reported as: main.wait_stream(inner)
main.wait_stream(outer)
total = z.sum()  # second

tcuda.synchronize()
assert float(total) == 6000
