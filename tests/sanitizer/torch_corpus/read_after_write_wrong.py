"""The side stream reads x, and does not wait for the write of x on the main stream."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    y = x * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
