"""Two graphs on two streams use the same array, and CUDA does not order launches of different graphs."""

import torch

one, two = torch.cuda.Stream(), torch.cuda.Stream()
x, first, second = torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    x += 1  # first
with torch.cuda.graph(second):
    y = x * 2  # second
torch.cuda.synchronize()

with torch.cuda.stream(one):
    first.replay()  # first launch
# missing: two.wait_stream(one)
with torch.cuda.stream(two):
    second.replay()  # second launch

torch.cuda.synchronize()
assert float(y.sum()) == 2000
