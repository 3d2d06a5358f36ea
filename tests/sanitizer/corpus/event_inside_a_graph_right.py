"""The graph waits for an event that is recorded after the write."""

import tcuda
from tcuda import xp

main, side, graph = tcuda.current_stream(), tcuda.Stream(), tcuda.CUDAGraph()
ready = tcuda.Event(external=True)
x = xp.zeros(1000)
with tcuda.graph(graph):
    ready.wait()
    y = x + 1
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)
    ready.record()
graph.replay()

tcuda.synchronize()
assert float(y.sum()) == 4000
