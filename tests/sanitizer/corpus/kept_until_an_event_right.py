"""The program keeps the array until the event after its last use is complete."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(3013, 2.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1
used = side.record_event()
used.synchronize()
del x
z = xp.zeros(3013)

tcuda.synchronize()
assert float(y.sum()) == 9039
assert float(z.sum()) == 0
