"""The stream waits for the event of one of two branches."""

import tcuda
from tcuda import xp

main, left, right = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.ones(1000)
y, z = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(left):
    xp.multiply(x, 2, out=y)
with tcuda.stream(right):
    xp.multiply(x, 3, out=z)  # first
main.wait_event(left.record_event())
# missing: main.wait_event(right.record_event())
# reported as: main.wait_stream(right)
total = (y + z).sum()  # second

tcuda.synchronize()
assert float(total) == 5000
