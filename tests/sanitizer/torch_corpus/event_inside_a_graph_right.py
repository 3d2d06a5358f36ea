"""The graph waits for an event that is recorded after the write."""

import torch

main, side, graph = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
ready = torch.cuda.Event(external=True)
ready.record()
x = torch.zeros(1000, device="cuda")
with torch.cuda.graph(graph):
    ready.wait()
    y = x + 1
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.fill_(3)
    ready.record()
graph.replay()

torch.cuda.synchronize()
assert float(y.sum()) == 4000
