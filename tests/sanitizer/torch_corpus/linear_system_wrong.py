"""The solver on the side stream does not wait for the write of the right-hand side."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
matrix, rhs = 2 * torch.eye(8, device="cuda"), torch.zeros(8, device="cuda")
torch.cuda.synchronize()

rhs.fill_(6)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    solution = torch.linalg.solve(matrix, rhs)  # second

torch.cuda.synchronize()
assert abs(float(solution.sum()) - 24) < 1e-9
