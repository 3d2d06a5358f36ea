"""The sum waits for the first two of three branches."""

import tcuda
from tcuda import xp

main, streams = tcuda.current_stream(), [tcuda.Stream() for _ in range(3)]
parts = xp.zeros((3, 1000))
tcuda.synchronize()

for number, stream in enumerate(streams):
    with tcuda.stream(stream):
        parts[number].fill(number + 1)  # first
for stream in streams[:2]:
    main.wait_stream(stream)
# missing: main.wait_stream(streams[2])
total = parts.sum()  # second

tcuda.synchronize()
assert float(total) == 6000
