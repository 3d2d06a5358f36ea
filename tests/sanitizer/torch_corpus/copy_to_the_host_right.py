"""The program waits for the copy, and then reads the page-locked buffer."""

import torch

side = torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
x = torch.full((1024,), 3.0, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    buffer.copy_(x, non_blocking=True)
side.synchronize()
total = buffer.sum()

torch.cuda.synchronize()
assert total == 3072
