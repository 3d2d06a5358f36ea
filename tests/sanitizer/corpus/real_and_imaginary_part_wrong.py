"""One stream writes the real part of z, and the other stream writes both parts."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
z = xp.zeros(1000, dtype="complex128")
part = z
tcuda.synchronize()

z.real[...] = 1  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    part[...] = 2  # second

tcuda.synchronize()
assert bool((part == 2).all())
