"""The stream is not idle yet, so the program waits for the stream before the program reads the result."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(10, 3.0)
host = tcuda.memory.zeros_pinned(10)
tcuda.synchronize()

with tcuda.stream(side):
    tcuda._sleep(100_000_000)
x.get(stream=side, out=host, blocking=False)
if not side.query():
    side.synchronize()
total = host.sum()

tcuda.synchronize()
assert total == 30
