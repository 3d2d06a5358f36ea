"""Two streams write every second and every third element of x, and share every sixth."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1200, device="cuda")
part = x[::3]
torch.cuda.synchronize()

x[::2] = 1  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    part[...] = 2  # second

torch.cuda.synchronize()
assert bool((part == 2).all())
