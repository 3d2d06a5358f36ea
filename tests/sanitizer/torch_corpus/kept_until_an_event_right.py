"""The program keeps the array until the event after its last use is complete."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((3013,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1
used = side.record_event()
used.synchronize()
del x
z = torch.zeros(3013, device="cuda")

torch.cuda.synchronize()
assert float(y.sum()) == 9039
assert float(z.sum()) == 0
