"""Two branches of the graph read x and write arrays of their own."""

import tcuda
from tcuda import xp

x, side, graph = xp.ones(1000), tcuda.Stream(), tcuda.CUDAGraph()
with tcuda.graph(graph):
    main = tcuda.current_stream()
    side.wait_stream(main)
    y = x + 1
    with tcuda.stream(side):
        z = x + 2
    main.wait_stream(side)
    total = (y + z).sum()

graph.replay()
tcuda.synchronize()
assert float(total) == 5000
