"""The main stream waits for every stream that computed a part."""

import tcuda
from tcuda import xp

main = tcuda.current_stream()
streams = [tcuda.Stream() for _ in range(3)]
parts = xp.zeros((3, 1000))
tcuda.synchronize()

for number, stream in enumerate(streams):
    with tcuda.stream(stream):
        parts[number].fill(number + 1)
for stream in streams:
    main.wait_stream(stream)
total = parts.sum()

tcuda.synchronize()
assert float(total) == 6000
