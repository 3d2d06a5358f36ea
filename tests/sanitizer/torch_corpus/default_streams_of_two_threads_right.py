"""A thread waits for its per-thread default stream before it ends."""

import threading

import torch

x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()


def produce():
    with torch.cuda.stream(torch.cuda.ExternalStream(2)):  # cudaStreamPerThread
        x.fill_(3)
        torch.cuda.current_stream().synchronize()


thread = threading.Thread(target=produce)
thread.start()
thread.join()
with torch.cuda.stream(torch.cuda.ExternalStream(2)):
    torch.mul(x, 2, out=y)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
