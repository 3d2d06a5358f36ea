"""The side stream waits for the write of x, and then reads x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
