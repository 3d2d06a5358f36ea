"""Each thread of the pool waits for the work of its stream."""

import concurrent.futures

import tcuda
from tcuda import xp

main, streams = tcuda.current_stream(), [tcuda.Stream() for _ in range(3)]
x = xp.zeros((3, 1000))
tcuda.synchronize()


def work(number):
    with tcuda.stream(streams[number]):
        x[number].fill(number + 1)
        streams[number].synchronize()


with concurrent.futures.ThreadPoolExecutor(1) as pool:
    list(pool.map(work, range(3)))
total = x.sum()

tcuda.synchronize()
assert float(total) == 6000
