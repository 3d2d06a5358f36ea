"""The loop leaves out the first stream, so the sum may miss a part."""

import tcuda
from tcuda import xp

main = tcuda.current_stream()
streams = [tcuda.Stream() for _ in range(3)]
parts = xp.zeros((3, 1000))
tcuda.synchronize()

for number, stream in enumerate(streams):
    with tcuda.stream(stream):
        parts[number].fill(number + 1)  # first
for stream in streams[1:]:
    main.wait_stream(stream)
# missing: main.wait_stream(streams[0])
total = parts.sum()  # second

tcuda.synchronize()
assert float(total) == 6000
