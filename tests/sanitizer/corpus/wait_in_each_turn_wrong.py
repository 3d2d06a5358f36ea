"""The reader waits for the writer in the first turn of the loop only."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, totals = xp.zeros((3, 1000)), []
tcuda.synchronize()

for turn in range(3):
    x[turn].fill(turn)  # first
    # missing: side.wait_stream(main)
    if turn == 0:
        side.wait_stream(main)
    with tcuda.stream(side):
        totals.append(x[turn].sum())  # second

tcuda.synchronize()
assert [float(total) for total in totals] == [0, 1000, 2000]
