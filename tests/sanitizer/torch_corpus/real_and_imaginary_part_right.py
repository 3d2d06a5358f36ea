"""Two streams write the real and the imaginary part of z, which are no common bytes."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
z = torch.zeros(1000, dtype=torch.complex128, device="cuda")
part = z.imag
torch.cuda.synchronize()

z.real[...] = 1
with torch.cuda.stream(side):
    part[...] = 2

torch.cuda.synchronize()
assert bool((part == 2).all())
