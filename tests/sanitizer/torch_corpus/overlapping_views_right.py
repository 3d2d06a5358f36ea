"""Two streams write two halves of x, which have no element in common."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x[:500].fill_(1)
with torch.cuda.stream(side):
    x[500:].fill_(2)

torch.cuda.synchronize()
assert float(x.sum()) == 1500
