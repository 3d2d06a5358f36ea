"""The next replay waits until the side stream has read the result of the last replay."""

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
    total = y.sum()
x.fill(50)
main.wait_stream(side)
graph.replay()

tcuda.synchronize()
assert float(total) == 2000
