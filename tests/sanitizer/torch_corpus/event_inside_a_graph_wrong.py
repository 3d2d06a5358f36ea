"""The graph waits for an event that is recorded before the write."""

import torch

main, side, graph = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
ready = torch.cuda.Event(external=True)
ready.record()
x = torch.zeros(1000, device="cuda")
with torch.cuda.graph(graph):
    ready.wait()
    y = x + 1  # second
torch.cuda.synchronize()

with torch.cuda.stream(side):
    ready.record()
    x.fill_(3)  # first
# missing: main.wait_stream(side)
graph.replay()  # second launch

torch.cuda.synchronize()
assert float(y.sum()) == 4000
