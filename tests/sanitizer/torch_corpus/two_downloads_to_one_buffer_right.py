"""The second copy to the page-locked buffer waits for the first."""

import torch

one, two = torch.cuda.Stream(), torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
x, y = torch.full((1024,), 1.0, device="cuda"), torch.full((1024,), 2.0, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(one):
    buffer.copy_(x, non_blocking=True)
two.wait_stream(one)
with torch.cuda.stream(two):
    buffer.copy_(y, non_blocking=True)

torch.cuda.synchronize()
assert buffer.sum() == 2048
