"""The program asks once, ignores the answer, and goes on while the side stream is still busy."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(1000, 1.0)
tcuda.synchronize()

with tcuda.stream(side):
    tcuda._sleep(20_000_000)
    x.fill(3)  # first
written = side.record_event()
written.query()  # False
# missing: main.wait_stream(side)
y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
