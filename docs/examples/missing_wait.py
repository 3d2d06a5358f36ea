"""A wait that is missing between two streams, found by the race detector."""

import tcuda
from tcuda import xp


def doubled_sum(*, wait):
    """Double an array on a side stream, and sum it on the current stream."""
    main, side = tcuda.current_stream(), tcuda.Stream()
    x = xp.arange(1000.0)
    side.wait_stream(main)
    with tcuda.stream(side):
        y = x * 2
    if wait:
        main.wait_stream(side)
    return y.sum()


for wait in (False, True):
    with tcuda.sanitizer.check(mode="collect") as report:
        doubled_sum(wait=wait)
    print(f"wait={wait}, races: {len(report)}")
    for race in report:
        print(f"  {race.kind}: line {race.current.stack[0].line} after line {race.previous.stack[0].line}")
        print(f"  {race.missing.sentence}")
