"""The main stream reads the result of the graph, and does not wait for the replay."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1  # first
torch.cuda.synchronize()

with torch.cuda.stream(side):
    graph.replay()  # first launch
# missing: main.wait_stream(side)
total = y.sum()  # second

torch.cuda.synchronize()
assert float(total) == 1000
