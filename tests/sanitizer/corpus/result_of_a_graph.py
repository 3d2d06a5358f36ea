"""The main stream reads the result of the graph, and does not wait for the replay."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, graph = xp.zeros(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    y = x + 1  # first
tcuda.synchronize()

with tcuda.stream(side):
    graph.replay()  # first launch
# missing: main.wait_stream(side)
total = y.sum()  # second

tcuda.synchronize()
assert float(total) == 1000
