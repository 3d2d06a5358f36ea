"""The third stream waits for the second, which does not wait for the first."""

import torch

first, second, third = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(first):
    x.fill_(3)  # first
third.wait_stream(second)
# missing: third.wait_stream(first)
with torch.cuda.stream(third):
    y = x * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
