"""The program asks until the event is complete. A successful query orders as a wait does."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(1000, 1.0)
tcuda.synchronize()

with tcuda.stream(side):
    tcuda._sleep(20_000_000)
    x.fill(3)
written = side.record_event()
while not written.query():
    pass
y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
