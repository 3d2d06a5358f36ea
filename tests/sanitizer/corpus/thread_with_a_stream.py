"""The program waits for the end of the thread, and not for the work that the thread queued."""

import threading

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()


def produce():
    with tcuda.stream(side):
        x.fill(3)  # first


thread = threading.Thread(target=produce)
thread.start()
thread.join()
# missing: main.wait_stream(side)
y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
