"""The replay does not wait for the write of the input of the graph."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1  # second
torch.cuda.synchronize()

x.fill_(3)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    graph.replay()  # second launch

torch.cuda.synchronize()
assert float(y.sum()) == 4000
