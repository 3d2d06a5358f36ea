"""The program changes an array in the memory of the graph while the replay may still write the array."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, graph = xp.ones(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    y = x + 1  # first
tcuda.synchronize()

with tcuda.stream(side):
    graph.replay()  # first launch
# missing: main.wait_stream(side)
y.fill(0)  # second

tcuda.synchronize()
assert float(y.sum()) == 0
