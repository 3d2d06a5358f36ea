"""One branch of the graph changes x after the other branch has read x."""

import torch

x, side, graph = torch.ones(1000, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    y = x + 1
    side.wait_stream(main)
    with torch.cuda.stream(side):
        x.fill_(100)
    main.wait_stream(side)

graph.replay()
torch.cuda.synchronize()
assert float(y.sum()) == 2000
