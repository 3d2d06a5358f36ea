"""Two graphs on two streams use the same array, and CUDA does not order launches of different graphs."""

import tcuda
from tcuda import xp

one, two = tcuda.Stream(), tcuda.Stream()
x, first, second = xp.zeros(1000), tcuda.CUDAGraph(), tcuda.CUDAGraph()
with tcuda.graph(first):
    x += 1  # first
with tcuda.graph(second):
    y = x * 2  # second
tcuda.synchronize()

with tcuda.stream(one):
    first.replay()  # first launch
# missing: two.wait_stream(one)
with tcuda.stream(two):
    second.replay()  # second launch

tcuda.synchronize()
assert float(y.sum()) == 2000
