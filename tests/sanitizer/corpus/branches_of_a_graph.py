"""Two branches of the graph read and change x, and the graph has no order between them."""

import tcuda
from tcuda import xp

x, side, graph = xp.ones(1000), tcuda.Stream(), tcuda.CUDAGraph()
with tcuda.graph(graph):
    main = tcuda.current_stream()
    side.wait_stream(main)
    y = x + 1  # first
    # missing: side.wait_stream(main)
    # reported as: wait_stream() in the capture
    with tcuda.stream(side):
        x.fill(100)  # second
    main.wait_stream(side)

graph.replay()  # launch
tcuda.synchronize()
assert float(y.sum()) == 2000
