"""Two branches of the graph read and change x, and the graph has no order between them."""

import torch

x, side, graph = torch.ones(1000, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    y = x + 1  # first
    # missing: side.wait_stream(main)
    with torch.cuda.stream(side):
        x.fill_(100)  # second
    main.wait_stream(side)

graph.replay()  # launch
torch.cuda.synchronize()
assert float(y.sum()) == 2000
