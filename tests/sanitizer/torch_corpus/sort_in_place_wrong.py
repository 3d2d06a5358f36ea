"""The main stream reads the smallest element of x while the side stream may still sort x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.arange(1000.0, device="cuda").flip(0)
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.copy_(x.sort()[0])  # first
# missing: main.wait_stream(side)
smallest = x[:10].clone()  # second

torch.cuda.synchronize()
assert smallest.tolist() == list(range(10))
