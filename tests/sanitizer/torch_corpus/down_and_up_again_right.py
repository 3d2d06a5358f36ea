"""The upload from the page-locked buffer waits for the download to the buffer."""

import torch

down, up = torch.cuda.Stream(), torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
x, y = torch.full((1024,), 3.0, device="cuda"), torch.zeros(1024, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(down):
    buffer.copy_(x, non_blocking=True)
up.wait_stream(down)
with torch.cuda.stream(up):
    y.copy_(buffer, non_blocking=True)

torch.cuda.synchronize()
assert float(y.sum()) == 3072
