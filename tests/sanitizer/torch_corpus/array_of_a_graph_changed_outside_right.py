"""The program changes an array in the memory of the graph after the replay."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1
torch.cuda.synchronize()

with torch.cuda.stream(side):
    graph.replay()
main.wait_stream(side)
y.fill_(0)

torch.cuda.synchronize()
assert float(y.sum()) == 0
