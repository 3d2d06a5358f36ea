"""Two branches of the graph read x and write arrays of their own."""

import torch

x, side, graph = torch.ones(1000, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    y = x + 1
    with torch.cuda.stream(side):
        z = x + 2
    main.wait_stream(side)
    total = (y + z).sum()

graph.replay()
torch.cuda.synchronize()
assert float(total) == 5000
