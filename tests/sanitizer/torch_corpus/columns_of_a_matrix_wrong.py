"""Two streams write columns of a matrix, and both write column 4."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
matrix = torch.zeros((100, 10), device="cuda")
torch.cuda.synchronize()

matrix[:, :5] = 1  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    matrix[:, 4:] = 2  # second

torch.cuda.synchronize()
assert float(matrix.sum()) == 1600
