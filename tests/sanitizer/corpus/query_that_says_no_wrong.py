"""The stream is not idle yet, and the program reads the result all the same."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(10, 3.0)
host = tcuda.memory.zeros_pinned(10)
tcuda.synchronize()

with tcuda.stream(side):
    tcuda._sleep(100_000_000)
x.get(stream=side, out=host, blocking=False)  # first
if not side.query():
    # missing: side.synchronize()
    pass
total = host.sum()  # second

tcuda.synchronize()
assert total == 30
