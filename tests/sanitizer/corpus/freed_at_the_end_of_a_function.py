"""The local array dies at the end of the function, while the side stream may still read the array."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()


def total():
    local = xp.full(3003, 2.0)
    side.wait_stream(main)
    with tcuda.stream(side):
        result = local.sum()  # first
    # missing: tcuda.memory.record_stream(local, side)
    return result


result = total()
z = xp.zeros(3003)  # second

tcuda.synchronize()
assert float(result) == 6006
assert float(z.sum()) == 0
