"""The launch of the second graph waits for the launch of the first."""

import tcuda
from tcuda import xp

one, two = tcuda.Stream(), tcuda.Stream()
x, first, second = xp.zeros(1000), tcuda.CUDAGraph(), tcuda.CUDAGraph()
with tcuda.graph(first):
    x += 1
with tcuda.graph(second):
    y = x * 2
tcuda.synchronize()

with tcuda.stream(one):
    first.replay()
two.wait_stream(one)
with tcuda.stream(two):
    second.replay()

tcuda.synchronize()
assert float(y.sum()) == 2000
