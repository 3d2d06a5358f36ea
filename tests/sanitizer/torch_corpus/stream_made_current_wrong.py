"""The program makes the side stream current without a block, and forgets the wait."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)  # first
# missing: side.wait_stream(main)
torch.cuda.set_stream(side)
y = x * 2  # second
torch.cuda.set_stream(main)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
