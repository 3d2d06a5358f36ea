"""The third stream waits for the second, and the second for the first. So the third comes after the first."""

import torch

first, second, third = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(first):
    x.fill_(3)
second.wait_stream(first)
third.wait_stream(second)
with torch.cuda.stream(third):
    y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
