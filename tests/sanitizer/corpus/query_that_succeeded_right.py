"""The program asks until the event is complete. A successful query orders as a wait does."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    tcuda._sleep(1_000_000)
    x.fill(3)
written = side.record_event()
while not written.query():
    pass
y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
