"""The write in the graph waits for the branch that reads x."""

import tcuda
from tcuda import xp

x, side, graph = xp.ones(1000), tcuda.Stream(), tcuda.CUDAGraph()
with tcuda.graph(graph):
    main = tcuda.current_stream()
    side.wait_stream(main)
    y = x + 1
    with tcuda.stream(side):
        z = x * 2
    main.wait_stream(side)
    x.fill(50)
    main.wait_stream(side)

graph.replay()
tcuda.synchronize()
assert float(y.sum()) == 2000
assert float(z.sum()) == 2000
