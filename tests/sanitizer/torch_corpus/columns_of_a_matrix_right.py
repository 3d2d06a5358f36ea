"""Two streams write different columns of a matrix."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
matrix = torch.zeros((100, 10), device="cuda")
torch.cuda.synchronize()

matrix[:, :4] = 1
with torch.cuda.stream(side):
    matrix[:, 4:] = 2

torch.cuda.synchronize()
assert float(matrix.sum()) == 1600
