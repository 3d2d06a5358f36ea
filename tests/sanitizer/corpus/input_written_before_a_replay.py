"""The replay does not wait for the write of the input of the graph."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, graph = xp.zeros(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    y = x + 1  # second
tcuda.synchronize()

x.fill(3)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    graph.replay()  # second launch

tcuda.synchronize()
assert float(y.sum()) == 4000
