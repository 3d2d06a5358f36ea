"""The side stream computes with x after the write of x."""

import tcuda
from tcuda import xp

code = "template <typename T> T twice(T x) { return 2 * x; }"
twice = tcuda.jiterator._create_jit_fn(code)
main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)
side.wait_stream(main)
with tcuda.stream(side):
    y = twice(x)

tcuda.synchronize()
assert float(y.sum()) == 6000
