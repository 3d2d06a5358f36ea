"""The main stream copies the beginning of x while the side stream may still shuffle x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.arange(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.copy_(x[torch.randperm(1000, device="cuda")])  # first
# missing: main.wait_stream(side)
begin = x[:100].clone()  # second

torch.cuda.synchronize()
assert begin.tolist() != list(range(100))
