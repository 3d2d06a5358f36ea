"""Each batch is recorded on the main stream, so the loading stream does not get its memory too early."""

import tcuda
from tcuda import xp

main, loading = tcuda.current_stream(), tcuda.Stream()


def load(number):
    with tcuda.stream(loading):
        return xp.full(3007, float(number))


sums = []
for number in range(4):
    batch = load(number)
    main.wait_stream(loading)
    sums.append(batch.sum())
    tcuda.memory.record_stream(batch, main)

tcuda.synchronize()
assert [float(total) for total in sums] == [0, 3007, 6014, 9021]
