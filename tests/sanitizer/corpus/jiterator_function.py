"""The side stream computes with x in a kernel of the jiterator, and does not wait for the write of x."""

import tcuda
from tcuda import xp

code = "template <typename T> T twice(T x) { return 2 * x; }"
twice = tcuda.jiterator._create_jit_fn(code)
main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y = twice(x)  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
