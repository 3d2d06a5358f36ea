"""The main stream writes the input of the graph after the replay."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, graph = xp.ones(1000), tcuda.CUDAGraph()
with tcuda.graph(graph):
    y = x + 1
tcuda.synchronize()

with tcuda.stream(side):
    graph.replay()
main.wait_stream(side)
x.fill(100)

tcuda.synchronize()
assert float(y.sum()) == 2000
