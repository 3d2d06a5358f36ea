"""The side stream waits for the first record of the event, and reads what was written before the second record."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, z = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

written = torch.cuda.Event()
x.fill_(3)
written.record(main)
side.wait_event(written)
z.fill_(3)  # first
written.record(main)
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    y = z * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
