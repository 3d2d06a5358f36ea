"""The program asks until the side stream has no work left. A successful query orders as a wait does."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.fill_(3)
while not side.query():
    pass
y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
