"""The memory of x goes to z, while the side stream may still write x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(3005, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    x.fill_(7)  # first
# missing: x.record_stream(side)
del x  # freed
z = torch.zeros(3005, device="cuda")  # second

torch.cuda.synchronize()
assert float(z.sum()) == 0
