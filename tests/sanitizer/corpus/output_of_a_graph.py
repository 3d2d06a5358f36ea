"""The side stream overwrites the output of the graph while the main stream may still read it."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, graph = xp.ones(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    y = x * 2
tcuda.synchronize()

graph.replay()
side.wait_stream(main)
with tcuda.stream(side):
    z = y + 1
total = y.sum()  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y.fill(50)  # second

tcuda.synchronize()
assert float(z.sum()) == 3000
assert float(total) == 2000
