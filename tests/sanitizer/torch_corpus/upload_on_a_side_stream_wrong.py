"""The main stream reads x while the upload of x from page-locked memory may still run."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
buffer[:] = 3
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.copy_(buffer, non_blocking=True)  # first
# missing: main.wait_stream(side)
total = x.sum()  # second

torch.cuda.synchronize()
assert float(total) == 3072
