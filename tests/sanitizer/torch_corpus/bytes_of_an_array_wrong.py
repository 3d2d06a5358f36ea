"""The side stream reads the bytes of x through a view of another dtype, without a wait."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, dtype=torch.int32, device="cuda")
octets = x.view(torch.uint8)
torch.cuda.synchronize()

x.fill_(1)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    total = octets.sum()  # second

torch.cuda.synchronize()
assert int(total) == 1000
