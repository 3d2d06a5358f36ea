"""The write waits for one of the two streams that read x."""

import tcuda
from tcuda import xp

main, one, two = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.ones(1000)
tcuda.synchronize()

with tcuda.stream(one):
    y = x + 1
with tcuda.stream(two):
    z = x + 2  # first
main.wait_stream(one)
# missing: main.wait_stream(two)
x.fill(100)  # second

tcuda.synchronize()
assert float(y.sum()) == 2000
assert float(z.sum()) == 3000
