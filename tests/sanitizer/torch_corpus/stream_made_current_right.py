"""The program waits, and then makes the side stream current without a block."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)
side.wait_stream(main)
torch.cuda.set_stream(side)
y = x * 2
torch.cuda.set_stream(main)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
