"""The event of the copy is not complete yet, so the program waits for the event before the read."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(2000, 3.0)
host = tcuda.memory.zeros_pinned(2000)
tcuda.synchronize()

with tcuda.stream(side):
    tcuda._sleep(100_000_000)
x.get(stream=side, out=host, blocking=False)
copied = side.record_event()
if not copied.query():
    copied.synchronize()
total = host.sum()

tcuda.synchronize()
assert total == 6000
