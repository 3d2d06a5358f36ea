"""One branch of the graph changes x after the other branch has read x."""

import tcuda
from tcuda import xp

x, side, graph = xp.ones(1000), tcuda.Stream(), tcuda.CUDAGraph()
with tcuda.graph(graph):
    main = tcuda.current_stream()
    side.wait_stream(main)
    y = x + 1
    side.wait_stream(main)
    with tcuda.stream(side):
        x.fill(100)
    main.wait_stream(side)

graph.replay()
tcuda.synchronize()
assert float(y.sum()) == 2000
