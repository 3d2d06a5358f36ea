"""The program changes the page-locked buffer after the device has read the buffer."""

import torch

side = torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
buffer[:] = 3
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.copy_(buffer, non_blocking=True)
side.synchronize()
buffer[:] = 100

torch.cuda.synchronize()
assert float(x.sum()) == 3072
