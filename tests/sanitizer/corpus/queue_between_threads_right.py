"""A thread passes an array and an event to another thread, which waits for the event."""

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
        consuming.wait_event(written)
        results.append(array * 2)


thread = threading.Thread(target=consume)
thread.start()
with tcuda.stream(producing):
    x.fill(3)
    arrays.put((x, producing.record_event()))
thread.join()

tcuda.synchronize()
assert float(results[0].sum()) == 6000
