"""The graph waits for an event that is recorded before the write."""

import tcuda
from tcuda import xp

main, side, graph = tcuda.current_stream(), tcuda.Stream(), tcuda.CUDAGraph()
ready = tcuda.Event(external=True)
x = xp.zeros(1000)
with tcuda.graph(graph):
    ready.wait()
    y = x + 1  # second
tcuda.synchronize()

with tcuda.stream(side):
    ready.record()
    x.fill(3)  # first
# missing: main.wait_stream(side)
graph.replay()  # second launch

tcuda.synchronize()
assert float(y.sum()) == 4000
