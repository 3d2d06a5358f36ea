"""The launch of the second graph waits for the launch of the first."""

import torch

one, two = torch.cuda.Stream(), torch.cuda.Stream()
x, first, second = torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    x += 1
with torch.cuda.graph(second):
    y = x * 2
torch.cuda.synchronize()

with torch.cuda.stream(one):
    first.replay()
two.wait_stream(one)
with torch.cuda.stream(two):
    second.replay()

torch.cuda.synchronize()
assert float(y.sum()) == 2000
