"""The main stream adds up the result of the side stream without a wait."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.arange(1000.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1  # first

# missing: main.wait_stream(side)
total = y.sum()  # second

torch.cuda.synchronize()
assert float(total) == 500_500
