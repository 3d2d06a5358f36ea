"""CUDA runs two launches of one executable graph one after the other, also on two streams."""

import tcuda
from tcuda import xp

one, two = tcuda.Stream(), tcuda.Stream()
x, graph = xp.zeros(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    x += 1
tcuda.synchronize()

with tcuda.stream(one):
    graph.replay()
with tcuda.stream(two):
    graph.replay()

tcuda.synchronize()
assert float(x.sum()) == 2000
