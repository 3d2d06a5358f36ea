"""The side stream copies x, and does not wait for the write of x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, copy = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    copy.copy_(x)  # second

torch.cuda.synchronize()
assert float(copy.sum()) == 3000
