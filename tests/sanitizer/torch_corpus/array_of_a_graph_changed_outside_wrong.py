"""The program changes an array in the memory of the graph while the replay may still write the array."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1  # first
torch.cuda.synchronize()

with torch.cuda.stream(side):
    graph.replay()  # first launch
# missing: main.wait_stream(side)
y.fill_(0)  # second

torch.cuda.synchronize()
assert float(y.sum()) == 0
