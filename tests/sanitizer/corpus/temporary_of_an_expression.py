"""A temporary array of the main stream dies while the side stream may still read the array."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(3017, 2.0)


def add_on_side(array):
    side.wait_stream(main)
    with tcuda.stream(side):
        result = array + 1  # first
    # missing: tcuda.memory.record_stream(array, side)
    return result


y = add_on_side(x * 10)
z = x * 0  # second

tcuda.synchronize()
assert float(y.sum()) == 63_357
assert float(z.sum()) == 0
