"""The side stream copies x after the main stream has written x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, copy = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)
side.wait_stream(main)
with torch.cuda.stream(side):
    copy.copy_(x)

torch.cuda.synchronize()
assert float(copy.sum()) == 3000
