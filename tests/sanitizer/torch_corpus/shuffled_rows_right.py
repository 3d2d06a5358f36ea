"""The main stream copies the beginning of x after the side stream has shuffled x."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.arange(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.copy_(x[torch.randperm(1000, device="cuda")])
main.wait_stream(side)
begin = x[:100].clone()

torch.cuda.synchronize()
assert begin.tolist() != list(range(100))
