"""The array is recorded on the stream that reads the array."""

import torch

main, side, other = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
x = torch.full((3009,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1
x.record_stream(side)
del x
z = torch.zeros(3009, device="cuda")

torch.cuda.synchronize()
assert float(y.sum()) == 9027
assert float(z.sum()) == 0
