"""The next call overwrites the result of the callable while another stream may still read it."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
double = tcuda.make_graphed_callables(lambda x: x * 2, (xp.ones(1000),))  # second
x = xp.ones(1000)
tcuda.synchronize()

y = double(x)
side.wait_stream(main)
with tcuda.stream(side):
    total = y.sum()  # first
# missing: main.wait_stream(side)
double(x + 4)  # second launch

side.synchronize()
assert float(total) == 2000
