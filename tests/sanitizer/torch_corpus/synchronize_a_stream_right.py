"""The program waits for the stream that wrote x."""

import torch

main, side, other = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.fill_(3)
side.synchronize()
y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
