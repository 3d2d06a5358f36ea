"""A graph draws random numbers on one stream while the program draws on another stream."""

import torch

side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    noise = torch.empty(1000, device="cuda").uniform_(1, 2)
torch.cuda.synchronize()

graph.replay()
with torch.cuda.stream(side):
    other = torch.empty(1000, device="cuda").uniform_(3, 4)

torch.cuda.synchronize()
assert float(noise.max()) < float(other.min())
