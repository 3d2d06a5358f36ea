"""The second launch waits for the stream that reads the output of the first."""

import tcuda
from tcuda import xp

one, two = tcuda.Stream(), tcuda.Stream()
x, graph = xp.ones(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    x *= 2
x.fill(1)
tcuda.synchronize()

with tcuda.stream(one):
    graph.replay()
    total = x.sum()
two.wait_stream(one)
with tcuda.stream(two):
    graph.replay()

one.synchronize()
assert float(total) == 2000
