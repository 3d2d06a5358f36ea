"""Four threads work at the same time, each on a stream and an array of its own."""

import threading

import tcuda
from tcuda import xp

arrays = [xp.zeros(1000) for _ in range(4)]
tcuda.synchronize()


def work(array):
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        for _ in range(5):
            array += 1
    stream.synchronize()


threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

assert [float(array.sum()) for array in arrays] == [5000] * 4
