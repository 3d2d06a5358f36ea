"""The memory of x is free at once, and goes to z while the side stream may still read x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((3001,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1  # first
# missing: x.record_stream(side)
del x  # freed
z = torch.zeros(3001, device="cuda")  # second

torch.cuda.synchronize()
assert float(y.sum()) == 9003
assert float(z.sum()) == 0
