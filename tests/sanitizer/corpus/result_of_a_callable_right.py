"""The next call waits for the stream that reads the result of the callable."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
double = tcuda.make_graphed_callables(lambda x: x * 2, (xp.ones(1000),))
x = xp.ones(1000)
tcuda.synchronize()

y = double(x)
side.wait_stream(main)
with tcuda.stream(side):
    total = y.sum()
main.wait_stream(side)
double(x + 4)

side.synchronize()
assert float(total) == 2000
