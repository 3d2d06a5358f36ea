"""The next replay overwrites the result while the side stream may still read the result."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2  # second
torch.cuda.synchronize()

graph.replay()
side.wait_stream(main)
with torch.cuda.stream(side):
    total = y.sum()  # first
x.fill_(50)
# missing: main.wait_stream(side)
graph.replay()  # second launch

torch.cuda.synchronize()
assert float(total) == 2000
