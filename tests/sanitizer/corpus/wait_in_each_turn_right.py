"""The reader waits for the writer in each turn of the loop."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, totals = xp.zeros((3, 1000)), []
tcuda.synchronize()

for turn in range(3):
    x[turn].fill(turn)
    side.wait_stream(main)
    with tcuda.stream(side):
        totals.append(x[turn].sum())

tcuda.synchronize()
assert [float(total) for total in totals] == [0, 1000, 2000]
