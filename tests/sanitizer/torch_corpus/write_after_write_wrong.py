"""Two streams write x, and no wait says which stream writes last."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(1)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    x.fill_(2)  # second

torch.cuda.synchronize()
assert float(x.sum()) == 2000
