"""The main stream changes an operand while the product may still read the operand."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
a, b = torch.ones((40, 40), device="cuda"), torch.ones((40, 40), device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    c = a @ b  # first
# missing: main.wait_stream(side)
a.fill_(0)  # second

torch.cuda.synchronize()
assert float(c.sum()) == 64_000
