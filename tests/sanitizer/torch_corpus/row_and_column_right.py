"""One stream writes a row, and the other stream writes a column below that row."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
matrix = torch.zeros((100, 100), device="cuda")
column = matrix[3:, 5]
torch.cuda.synchronize()

matrix[2] = 1
with torch.cuda.stream(side):
    column[...] = 2

torch.cuda.synchronize()
assert bool((column == 2).all())
