"""The 32nd stream is another stream than the first, so the work has no order."""

import torch

first = torch.cuda.Stream()
others = [torch.cuda.Stream() for _ in range(30)]
last = torch.cuda.Stream()
x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(first):
    x.fill_(3)  # first
# missing: last.wait_stream(first)
with torch.cuda.stream(last):
    torch.mul(x, 2, out=y)  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
