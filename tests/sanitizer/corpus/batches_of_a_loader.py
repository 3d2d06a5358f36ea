"""The loading stream gets the memory of a dead batch, which the main stream may still read."""

import tcuda
from tcuda import xp

main, loading = tcuda.current_stream(), tcuda.Stream()


def load(number):
    with tcuda.stream(loading):
        return xp.full(3007, float(number))  # second


sums = []
for number in range(4):
    batch = load(number)
    main.wait_stream(loading)
    sums.append(batch.sum())  # first
    # missing: tcuda.memory.record_stream(batch, main)

tcuda.synchronize()
assert [float(total) for total in sums] == [0, 3007, 6014, 9021]
