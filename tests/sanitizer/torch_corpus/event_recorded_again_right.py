"""The side stream waits for the first record of the event, and reads only what was written before."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, z = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

written = torch.cuda.Event()
x.fill_(3)
written.record(main)
side.wait_event(written)
z.fill_(3)
written.record(main)
with torch.cuda.stream(side):
    y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
