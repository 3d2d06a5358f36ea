"""The second launch overwrites the output of the first while another stream may still read it."""

import tcuda
from tcuda import xp

one, two = tcuda.Stream(), tcuda.Stream()
x, graph = xp.ones(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    x *= 2  # second
x.fill(1)
tcuda.synchronize()

with tcuda.stream(one):
    graph.replay()
    total = x.sum()  # first
# missing: two.wait_stream(one)
with tcuda.stream(two):
    graph.replay()  # second launch

one.synchronize()
assert float(total) == 2000
