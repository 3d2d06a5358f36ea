"""The side stream reads the transposed matrix after the write of the matrix."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
matrix = torch.zeros((50, 20), device="cuda")
transposed = matrix.T
torch.cuda.synchronize()

matrix.fill_(3)
side.wait_stream(main)
with torch.cuda.stream(side):
    sums = transposed.sum(dim=1)

torch.cuda.synchronize()
assert sums.tolist() == [150] * 20
