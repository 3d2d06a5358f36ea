"""The next replay overwrites the result while the side stream may still read the result."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, graph = xp.ones(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    y = x * 2  # second
tcuda.synchronize()

graph.replay()
side.wait_stream(main)
with tcuda.stream(side):
    total = y.sum()  # first
x.fill(50)
# missing: main.wait_stream(side)
graph.replay()  # second launch

tcuda.synchronize()
assert float(total) == 2000
