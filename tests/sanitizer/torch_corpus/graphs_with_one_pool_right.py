"""Two graphs share the memory of one pool and run one after the other."""

import torch

one, two, pool = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.graph_pool_handle()
x, y, z = torch.ones(5000, device="cuda"), torch.zeros(5000, device="cuda"), torch.zeros(5000, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first, pool=pool):
    torch.add(x * 2, 1, out=y)
with torch.cuda.graph(second, pool=pool):
    torch.add(x * 5, 1, out=z)
torch.cuda.synchronize()

with torch.cuda.stream(one):
    first.replay()
two.wait_stream(one)
with torch.cuda.stream(two):
    second.replay()

torch.cuda.synchronize()
assert float(y.sum()) == 15_000
assert float(z.sum()) == 30_000
