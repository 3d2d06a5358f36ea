"""The loop fills a staging buffer again, and does not wait for the copy of the buffer."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
buffers = [tcuda.memory.empty_pinned(5000) for _ in range(2)]
batches = [xp.zeros(5000) for _ in range(4)]
copied = [tcuda.Event() for _ in range(2)]
tcuda.synchronize()

for number, batch in enumerate(batches):
    buffer, event = buffers[number % 2], copied[number % 2]
    # missing: event.synchronize()
    # reported as: side.synchronize()
    buffer[...] = number  # second
    batch.set(buffer, stream=side)  # first
    event.record(side)

tcuda.synchronize()
assert [float(batch[0]) for batch in batches] == [0, 1, 2, 3]
