"""A pool has 32 streams, so the 33rd stream is the first stream again, and the work is in order."""

import torch

first = torch.cuda.Stream()
others = [torch.cuda.Stream() for _ in range(31)]
last = torch.cuda.Stream()
x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(first):
    x.fill_(3)
with torch.cuda.stream(last):
    torch.mul(x, 2, out=y)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
