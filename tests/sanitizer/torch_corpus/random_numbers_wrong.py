"""The main stream reads random numbers that the side stream may not have drawn yet."""

import torch

torch.cuda.manual_seed(1)
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
with torch.cuda.stream(side):
    noise = torch.empty(1000, device="cuda").uniform_(1, 2)  # first
# missing: main.wait_stream(side)
low = noise.min()  # second

torch.cuda.synchronize()
assert 1 <= float(low) <= 2
