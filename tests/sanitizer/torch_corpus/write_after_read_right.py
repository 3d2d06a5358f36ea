"""The side stream changes x after the main stream has read x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.ones(1000, device="cuda")
torch.cuda.synchronize()

y = x + 1
side.wait_stream(main)
with torch.cuda.stream(side):
    x.fill_(100)

torch.cuda.synchronize()
assert float(y.sum()) == 2000
