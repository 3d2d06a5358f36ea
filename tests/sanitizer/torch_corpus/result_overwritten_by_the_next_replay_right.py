"""The next replay waits until the side stream has read the result of the last replay."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, graph = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
torch.cuda.synchronize()

graph.replay()
side.wait_stream(main)
with torch.cuda.stream(side):
    total = y.sum()
x.fill_(50)
main.wait_stream(side)
graph.replay()

torch.cuda.synchronize()
assert float(total) == 2000
