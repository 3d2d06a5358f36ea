"""The main stream reads the result of the graph after the replay."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1
torch.cuda.synchronize()

with torch.cuda.stream(side):
    graph.replay()
main.wait_stream(side)
total = y.sum()

torch.cuda.synchronize()
assert float(total) == 1000
