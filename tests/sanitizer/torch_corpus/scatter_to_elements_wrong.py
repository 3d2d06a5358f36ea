"""Two streams write to elements of x by lists of indices, and index 20 is in both lists."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(100, device="cuda")
first, second = torch.tensor([1, 5, 20], device="cuda"), torch.tensor([2, 6, 20], device="cuda")
torch.cuda.synchronize()

x[first] = 1  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    x[second] = 2  # second

torch.cuda.synchronize()
assert x[second].tolist() == [2, 2, 2]
