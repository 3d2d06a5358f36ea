"""The side stream waits until the main stream has filled the array with zeros."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    x += 5

torch.cuda.synchronize()
assert float(x.sum()) == 5000
