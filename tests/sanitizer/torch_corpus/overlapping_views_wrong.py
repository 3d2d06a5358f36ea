"""Two streams write two views of x that begin at different elements and overlap."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x[:600].fill_(1)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    x[500:].fill_(2)  # second

torch.cuda.synchronize()
assert float(x.sum()) == 1500
