"""Two streams write the real and the imaginary part of z, which are no common bytes."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
z = xp.zeros(1000, dtype="complex128")
part = z.imag
tcuda.synchronize()

z.real[...] = 1
with tcuda.stream(side):
    part[...] = 2

tcuda.synchronize()
assert bool((part == 2).all())
