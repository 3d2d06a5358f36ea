"""The side stream adds to an array that the main stream may still fill with zeros."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    x += 5  # second

torch.cuda.synchronize()
assert float(x.sum()) == 5000
