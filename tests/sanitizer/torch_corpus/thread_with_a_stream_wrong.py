"""The program waits for the end of the thread, and not for the work that the thread queued."""

import threading

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()


def produce():
    with torch.cuda.stream(side):
        x.fill_(3)  # first


thread = threading.Thread(target=produce)
thread.start()
thread.join()
# missing: main.wait_stream(side)
y = x * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
