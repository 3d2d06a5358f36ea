"""The main stream waits for the stream of the thread."""

import threading

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()


def produce():
    with tcuda.stream(side):
        x.fill(3)


thread = threading.Thread(target=produce)
thread.start()
thread.join()
main.wait_stream(side)
y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
