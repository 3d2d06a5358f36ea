"""CUDA runs two launches of one executable graph one after the other, also on two streams."""

import torch

one, two = torch.cuda.Stream(), torch.cuda.Stream()
x, graph = torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x += 1
torch.cuda.synchronize()

with torch.cuda.stream(one):
    graph.replay()
with torch.cuda.stream(two):
    graph.replay()

torch.cuda.synchronize()
assert float(x.sum()) == 2000
