"""The main stream reads x after the side stream has sorted x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.arange(1000.0, device="cuda").flip(0)
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.copy_(x.sort()[0])
main.wait_stream(side)
smallest = x[:10].clone()

torch.cuda.synchronize()
assert smallest.tolist() == list(range(10))
