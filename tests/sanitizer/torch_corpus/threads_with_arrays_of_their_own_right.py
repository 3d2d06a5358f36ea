"""Four threads work at the same time, each on a stream and an array of its own."""

import threading

import torch

arrays = [torch.zeros(1000, device="cuda") for _ in range(4)]
torch.cuda.synchronize()


def work(array):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(5):
            array += 1
    stream.synchronize()


threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

assert [float(array.sum()) for array in arrays] == [5000] * 4
