"""One stream writes the real part of z, and the other stream writes both parts."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
z = torch.zeros(1000, dtype=torch.complex128, device="cuda")
part = z
torch.cuda.synchronize()

z.real[...] = 1  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    part[...] = 2  # second

torch.cuda.synchronize()
assert bool((part == 2).all())
