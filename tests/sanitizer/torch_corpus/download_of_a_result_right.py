"""The side stream copies x to the host after the main stream has computed x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
buffer = torch.zeros(1024).pin_memory()
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()

x.fill_(3)
side.wait_stream(main)
with torch.cuda.stream(side):
    buffer.copy_(x, non_blocking=True)

torch.cuda.synchronize()
assert buffer.sum() == 3072
