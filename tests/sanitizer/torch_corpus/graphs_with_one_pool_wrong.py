"""Two graphs share the memory of one pool, and may run at the same time."""

import torch

one, two, pool = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.graph_pool_handle()
x, y, z = torch.ones(5000, device="cuda"), torch.zeros(5000, device="cuda"), torch.zeros(5000, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first, pool=pool):
    torch.add(x * 2, 1, out=y)  # first
with torch.cuda.graph(second, pool=pool):
    torch.add(x * 5, 1, out=z)  # second
torch.cuda.synchronize()

with torch.cuda.stream(one):
    first.replay()  # first launch
# missing: two.wait_stream(one)
with torch.cuda.stream(two):
    second.replay()  # second launch

torch.cuda.synchronize()
assert float(y.sum()) == 15_000
assert float(z.sum()) == 30_000
