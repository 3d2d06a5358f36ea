"""Each of two streams waits for the other before its next step."""

import tcuda
from tcuda import xp

ping, pong = tcuda.Stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

for _ in range(3):
    with tcuda.stream(ping):
        ping.wait_stream(pong)
        x += 1
    with tcuda.stream(pong):
        pong.wait_stream(ping)
        x *= 2

tcuda.synchronize()
assert float(x.sum()) == 14_000
