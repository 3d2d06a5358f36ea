"""The main stream waits for the side stream before the sum of its result."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.arange(1000.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1

main.wait_stream(side)
total = y.sum()

torch.cuda.synchronize()
assert float(total) == 500_500
