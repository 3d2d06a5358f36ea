"""The main stream waits for the stream of the thread."""

import threading

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()


def produce():
    with torch.cuda.stream(side):
        x.fill_(3)


thread = threading.Thread(target=produce)
thread.start()
thread.join()
main.wait_stream(side)
y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
