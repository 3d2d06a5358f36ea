"""The side stream copies x to the host, and does not wait until the main stream has computed x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()

x.fill_(3)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    buffer.copy_(x, non_blocking=True)  # second

torch.cuda.synchronize()
assert buffer.sum() == 3072
