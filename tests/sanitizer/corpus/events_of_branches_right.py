"""The stream waits for the events of both branches."""

import tcuda
from tcuda import xp

main, left, right = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.ones(1000)
y, z = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(left):
    xp.multiply(x, 2, out=y)
with tcuda.stream(right):
    xp.multiply(x, 3, out=z)
main.wait_event(left.record_event())
main.wait_event(right.record_event())
total = (y + z).sum()

tcuda.synchronize()
assert float(total) == 5000
