"""The program reads the page-locked buffer while the copy to the buffer may still run."""

import torch

side = torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
x = torch.full((1024,), 3.0, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    buffer.copy_(x, non_blocking=True)  # first
# missing: side.synchronize()
total = buffer.sum()  # second

torch.cuda.synchronize()
assert total == 3072
