"""The main stream writes the input of the graph while the replay may still read the input."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1  # first
torch.cuda.synchronize()

with torch.cuda.stream(side):
    graph.replay()  # first launch
# missing: main.wait_stream(side)
x.fill_(100)  # second

torch.cuda.synchronize()
assert float(y.sum()) == 2000
