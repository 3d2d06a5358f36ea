"""The temporary array gets a name and is recorded on the side stream."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(3017, 2.0)


def add_on_side(array):
    side.wait_stream(main)
    with tcuda.stream(side):
        result = array + 1
    tcuda.memory.record_stream(array, side)
    return result


y = add_on_side(x * 10)
z = x * 0

tcuda.synchronize()
assert float(y.sum()) == 63_357
assert float(z.sum()) == 0
