"""A thread passes an array to another thread, which does not wait for the event of the write."""

import queue
import threading

import tcuda
from tcuda import xp

producing, consuming = tcuda.Stream(), tcuda.Stream()
arrays, results = queue.Queue(), []
x = xp.zeros(1000)
tcuda.synchronize()


def consume():
    array, written = arrays.get()
    with tcuda.stream(consuming):
        # missing: consuming.wait_event(written)
        # reported as: consuming.wait_stream(producing)
        results.append(array * 2)  # second


thread = threading.Thread(target=consume)
thread.start()
with tcuda.stream(producing):
    x.fill(3)  # first
    arrays.put((x, producing.record_event()))
thread.join()

tcuda.synchronize()
assert float(results[0].sum()) == 6000
