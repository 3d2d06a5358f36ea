"""Two streams write to elements of x by lists of indices, which have no index in common."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(100, device="cuda")
first, second = torch.tensor([1, 5, 20], device="cuda"), torch.tensor([2, 6, 21], device="cuda")
torch.cuda.synchronize()

x[first] = 1
with torch.cuda.stream(side):
    x[second] = 2

torch.cuda.synchronize()
assert x[second].tolist() == [2, 2, 2]
