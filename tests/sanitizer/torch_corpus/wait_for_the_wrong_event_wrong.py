"""The side stream waits for the event of an earlier operation, not for the event of the write."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(2)
filled = main.record_event()
torch.mul(x, 3, out=y)  # first
multiplied = main.record_event()
side.wait_event(filled)
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    total = y.sum()  # second

torch.cuda.synchronize()
assert float(total) == 6000
