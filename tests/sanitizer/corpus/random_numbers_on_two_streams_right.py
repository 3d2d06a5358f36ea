"""One generator draws on two streams. The state of the generator lies on the host, so no wait is needed."""

import tcuda
from tcuda import xp

streams = [tcuda.Stream(), tcuda.Stream()]
drawn = []
for stream in streams:
    with tcuda.stream(stream):
        drawn.append(xp.random.standard_normal(1000))

tcuda.synchronize()
assert not bool((drawn[0] == drawn[1]).all())
