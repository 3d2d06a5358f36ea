"""Two streams write the even and the odd elements of x, which are no common bytes."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1200, device="cuda")
part = x[1::2]
torch.cuda.synchronize()

x[::2] = 1
with torch.cuda.stream(side):
    part[...] = 2

torch.cuda.synchronize()
assert bool((part == 2).all())
