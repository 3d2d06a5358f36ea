"""The filling stream fills a buffer again, and does not wait until the main stream has read the buffer."""

import tcuda
from tcuda import xp

main, filling = tcuda.current_stream(), tcuda.Stream()
buffers = [xp.zeros(1000), xp.zeros(1000)]
consumed = [tcuda.Event(), tcuda.Event()]
sums = []
tcuda.synchronize()

for step in range(4):
    buffer, done = buffers[step % 2], consumed[step % 2]
    with tcuda.stream(filling):
        # missing: filling.wait_event(done)
        # reported as: filling.wait_stream(main)
        buffer.fill(step)  # second
    main.wait_stream(filling)
    sums.append(buffer.sum())  # first
    done.record(main)

tcuda.synchronize()
assert [float(total) for total in sums] == [0, 1000, 2000, 3000]
