"""The side stream reads the transposed matrix, which is the same memory as the matrix."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
matrix = torch.zeros((50, 20), device="cuda")
transposed = matrix.T
torch.cuda.synchronize()

matrix.fill_(3)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    sums = transposed.sum(dim=1)  # second

torch.cuda.synchronize()
assert sums.tolist() == [150] * 20
