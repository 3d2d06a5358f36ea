"""Two streams write x, and the second stream waits for the first."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(1)
side.wait_stream(main)
with torch.cuda.stream(side):
    x.fill_(2)

torch.cuda.synchronize()
assert float(x.sum()) == 2000
