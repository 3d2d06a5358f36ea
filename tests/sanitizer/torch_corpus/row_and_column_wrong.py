"""One stream writes a row and the other stream a column, which have one element in common."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
matrix = torch.zeros((100, 100), device="cuda")
column = matrix[:, 5]
torch.cuda.synchronize()

matrix[2] = 1  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    column[...] = 2  # second

torch.cuda.synchronize()
assert bool((column == 2).all())
