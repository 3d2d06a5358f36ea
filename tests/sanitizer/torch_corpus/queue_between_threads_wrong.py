"""A thread passes an array to another thread, which does not wait for the event of the write."""

import queue
import threading

import torch

producing, consuming = torch.cuda.Stream(), torch.cuda.Stream()
arrays, results = queue.Queue(), []
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()


def consume():
    array, written = arrays.get()
    with torch.cuda.stream(consuming):
        # missing: consuming.wait_event(written)
        results.append(array * 2)  # second


thread = threading.Thread(target=consume)
thread.start()
with torch.cuda.stream(producing):
    x.fill_(3)  # first
    arrays.put((x, producing.record_event()))
thread.join()

torch.cuda.synchronize()
assert float(results[0].sum()) == 6000
