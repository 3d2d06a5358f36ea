"""The write in the graph does not wait for the branch that reads x."""

import tcuda
from tcuda import xp

x, side, graph = xp.ones(1000), tcuda.Stream(), tcuda.CUDAGraph()
with tcuda.graph(graph):
    main = tcuda.current_stream()
    side.wait_stream(main)
    y = x + 1
    with tcuda.stream(side):
        z = x * 2  # first
    # missing: main.wait_stream(side)
    # reported as: wait_stream() in the capture
    x.fill(50)  # second
    main.wait_stream(side)

graph.replay()  # launch
tcuda.synchronize()
assert float(y.sum()) == 2000
assert float(z.sum()) == 2000
