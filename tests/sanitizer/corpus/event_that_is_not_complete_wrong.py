"""The event of the copy is not complete yet, and the program reads the result all the same."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(2000, 3.0)
host = tcuda.memory.zeros_pinned(2000)
tcuda.synchronize()

with tcuda.stream(side):
    tcuda._sleep(100_000_000)
x.get(stream=side, out=host, blocking=False)  # first
copied = side.record_event()
if not copied.query():
    pass
# missing: copied.synchronize()
# reported as: side.synchronize()
total = host.sum()  # second

tcuda.synchronize()
assert total == 6000
