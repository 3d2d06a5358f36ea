"""The write waits for two of the three branches that read x."""

import tcuda
from tcuda import xp

main, streams = tcuda.current_stream(), [tcuda.Stream() for _ in range(3)]
x, parts = xp.ones(1000), xp.zeros((3, 1000))
tcuda.synchronize()

for number, stream in enumerate(streams):
    with tcuda.stream(stream):
        xp.multiply(x, number, out=parts[number])  # first
for stream in streams[:2]:
    main.wait_stream(stream)
# missing: main.wait_stream(streams[2])
x.fill(100)  # second

tcuda.synchronize()
assert float(parts.sum()) == 3000
