"""A graph draws random numbers on one stream while the program draws on another stream."""

import tcuda
from tcuda import xp

side, graph = tcuda.Stream(), tcuda.CUDAGraph()
with tcuda.graph(graph):
    noise = xp.random.uniform(1, 2, 1000)
tcuda.synchronize()

graph.replay()
with tcuda.stream(side):
    other = xp.random.uniform(3, 4, 1000)

tcuda.synchronize()
assert float(noise.max()) < float(other.min())
