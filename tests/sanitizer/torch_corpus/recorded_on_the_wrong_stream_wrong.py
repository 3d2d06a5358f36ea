"""The array is recorded on another stream than the stream that reads the array."""

import torch

main, side, other = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
x = torch.full((3009,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1  # first
x.record_stream(other)
# missing: x.record_stream(side)
del x  # freed
z = torch.zeros(3009, device="cuda")  # second

torch.cuda.synchronize()
assert float(y.sum()) == 9027
assert float(z.sum()) == 0
