"""Each thread has a per-thread default stream of its own. To join the thread does not wait for its stream."""

import threading

import tcuda
from tcuda import xp

x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()


def produce():
    with tcuda.stream(tcuda.ExternalStream(2)):  # cudaStreamPerThread
        x.fill(3)  # first
        # missing: tcuda.current_stream().synchronize()


thread = threading.Thread(target=produce)
thread.start()
thread.join()
with tcuda.stream(tcuda.ExternalStream(2)):
    xp.multiply(x, 2, out=y)  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
