"""The main stream waits for the write of the side stream before the memory goes to another array."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(3005, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    x.fill_(7)
x.record_stream(side)
del x
z = torch.zeros(3005, device="cuda")

torch.cuda.synchronize()
assert float(z.sum()) == 0
